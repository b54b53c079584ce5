// A view of one thing, which is read anew while somebody looks at it.

const AGAIN_MS = 2000;

// `read(said)` reads and draws it, with what the address says; `failed(failure)` says why it can't be.
export function watched(read, failed) {
  let timer = 0;
  let said = null;
  let turn = 0;
  document.addEventListener("visibilitychange", () => said && again(0));

  function again(delay) {
    clearTimeout(timer);
    timer = setTimeout(load, delay);
  }

  async function load() {
    if (said === null || document.hidden) return;
    const mine = (turn += 1);
    try {
      await read(said);
    } catch (failure) {
      if (mine === turn) failed(failure);
    }
    if (mine === turn && said !== null) again(AGAIN_MS);
  }

  return {
    show(wanted) {
      said = wanted;
      again(0);
    },
    hide() {
      said = null;
      turn += 1;
      clearTimeout(timer);
    },
    refresh: () => again(0),
  };
}
