"""Scripts: Lua that executes commands, as one of them."""
