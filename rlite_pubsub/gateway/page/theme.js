// Sets the colours before anything is drawn. Not a module, because those wait until the whole page is read.
"use strict";
{
  const chosen = localStorage.getItem("rlite-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
