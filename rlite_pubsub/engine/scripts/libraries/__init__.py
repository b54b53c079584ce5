"""The libraries that Redis gives to scripts, written in Lua: cjson, cmsgpack, struct and bit."""
