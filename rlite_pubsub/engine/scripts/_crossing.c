/* How Python runs Lua's functions, and they execute commands: without lupa's objects in between.

   lupa brings the Lua, makes its states and minds their memory. What each script passes is here: its keys and arguments
   become Lua's tables, each redis.call hands Python a list of words and Lua a reply, and what the script returns becomes
   a reply. All else is asked of sandbox.lua, of whose functions a few are kept. crossing.py says what each thing
   promises, and does without a compiler with what lupa has.

   Laws:
    - Lua raises errors by long jumps, which must not pass through Python: code that may raise one holds no reference of
      its own meanwhile. What Lua is being handed the Crossing holds.
    - A script's memory is Lua's: what shares one string or table many times is copied here up to a limit only.
    - Python's lock is held from the first to the last: nobody else reaches this Lua between two steps. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

/* Lua 5.1, as lua.h has it. Its functions are found in lupa's own library. */
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
enum { NIL = 0, BOOLEAN = 1, NUMBER = 3, STRING = 4, TABLE = 5 };
#define REGISTRY (-10000)
#define UPVALUE(number) (-10002 - (number))
#define ALL_RESULTS (-1)
enum { COUNT_KIB = 3, COUNT_BYTES = 4 }; /* of lua_gc */

static struct {
    int (*checkstack)(lua_State *, int);
    void (*createtable)(lua_State *, int, int);
    void (*call)(lua_State *, int, int);
    int (*error)(lua_State *);
    int (*gc)(lua_State *, int, int);
    int (*getmetatable)(lua_State *, int);
    int (*gettop)(lua_State *);
    int (*next)(lua_State *, int);
    int (*pcall)(lua_State *, int, int, int);
    void (*pushboolean)(lua_State *, int);
    void (*pushcclosure)(lua_State *, lua_CFunction, int);
    void (*pushlightuserdata)(lua_State *, void *);
    void (*pushlstring)(lua_State *, const char *, size_t);
    void (*pushnil)(lua_State *);
    void (*pushnumber)(lua_State *, double);
    void (*pushvalue)(lua_State *, int);
    void (*rawgeti)(lua_State *, int, int);
    void (*rawset)(lua_State *, int);
    void (*rawseti)(lua_State *, int, int);
    void (*settop)(lua_State *, int);
    int (*toboolean)(lua_State *, int);
    const char *(*tolstring)(lua_State *, int, size_t *);
    double (*tonumber)(lua_State *, int);
    void *(*touserdata)(lua_State *, int);
    int (*type)(lua_State *, int);
    int (*ref)(lua_State *, int);
    void (*unref)(lua_State *, int, int);
} lua;

static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"lua_checkstack", &lua.checkstack}, {"lua_createtable", &lua.createtable},
    {"lua_call", &lua.call}, {"lua_error", &lua.error}, {"lua_gc", &lua.gc}, {"lua_getmetatable", &lua.getmetatable},
    {"lua_gettop", &lua.gettop}, {"lua_next", &lua.next}, {"lua_pcall", &lua.pcall},
    {"lua_pushboolean", &lua.pushboolean}, {"lua_pushcclosure", &lua.pushcclosure},
    {"lua_pushlightuserdata", &lua.pushlightuserdata}, {"lua_pushlstring", &lua.pushlstring},
    {"lua_pushnil", &lua.pushnil}, {"lua_pushnumber", &lua.pushnumber}, {"lua_pushvalue", &lua.pushvalue},
    {"lua_rawgeti", &lua.rawgeti}, {"lua_rawset", &lua.rawset}, {"lua_rawseti", &lua.rawseti},
    {"lua_settop", &lua.settop}, {"lua_toboolean", &lua.toboolean}, {"lua_tolstring", &lua.tolstring},
    {"lua_tonumber", &lua.tonumber}, {"lua_touserdata", &lua.touserdata}, {"lua_type", &lua.type},
    {"luaL_ref", &lua.ref}, {"luaL_unref", &lua.unref},
};

#define LARGE_BYTES (1 << 16)           /* what is smaller Lua has room for (MARGIN_BYTES of sandbox.py) */
#define MOST_ELEMENTS 4096              /* and for a table of so many */
#define LARGEST 9007199254740992.0      /* whole numbers below it are the same in Lua and in Python */
#define KNOWN_WORDS 64                  /* names of commands that are kept as Python has them */
#define MOST_NESTED 16                  /* tables within each other that are made replies of here */
#define MOST_RETURNED (1 << 24)         /* bytes of what is within such a table, ELEMENT_BYTES each and what they hold */
#define ELEMENT_BYTES 64
#define MOST_PACKED (1 << 20)           /* bytes of MessagePack, which nobody can interrupt here */
#define MOST_WITH_NIL 64                /* members of a map in it, if some are nil: each of these may move all others */

typedef struct {
    PyObject_HEAD
    lua_State *state;   /* the main one; NULL: it is not open yet, or gone */
    PyObject *runtime;  /* lupa's; with it the state goes */
    PyObject *execute;  /* (words) -> what was replied, or a Refusal */
    PyObject *has_room; /* () -> whether there is memory for a reply */
    PyObject *left;     /* a reply or a Refusal that Lua is being handed, or that Python is to make Lua's of */
    size_t most_bytes;  /* of memory, before `has_room` is asked */
    int protocol;       /* of the replies to the script */
    int is_running;     /* a script */
    int is_disturbed;   /* the last one may have left what `reset` puts right */
    /* in Lua's registry: sandbox.lua's, and ours */
    int globals, tell_error, finish, failed, fetch, reset;
    int run, keys, argv;
    PyObject *known[KNOWN_WORDS]; /* words that commands were called by, or NULL */
} Crossing;

static size_t used_bytes(lua_State *state)
{
    return ((size_t)lua.gc(state, COUNT_KIB, 0) << 10) + (size_t)lua.gc(state, COUNT_BYTES, 0);
}

static PyObject *status_type, *refusal_type; /* of replies: a line of text; and of what was not executed */

/* -- what a script calls */

static int raise_text(lua_State *state, const char *text)
{
    lua.createtable(state, 0, 1);
    lua.pushlstring(state, "err", 3);
    lua.pushlstring(state, text, strlen(text));
    lua.rawset(state, -3);
    return lua.error(state);
}

static void push_failed(Crossing *self, lua_State *state, int kind, const char *text, size_t size)
{
    /* The table that tells of it; `kind` is that of `failed`, a negative one is nil: then this does not return. */
    lua.rawgeti(state, REGISTRY, self->failed);
    if (kind < 0)
        lua.pushnil(state);
    else
        lua.pushboolean(state, kind);
    lua.pushlstring(state, text, size);
}

static int is_easy(PyObject *reply)
{
    /* Whether Lua has room for it, whatever it holds, and it is what most commands answer. */
    if (PyBytes_CheckExact(reply) || Py_TYPE(reply) == (PyTypeObject *)status_type)
        return PyBytes_GET_SIZE(reply) < LARGE_BYTES;
    if (reply == Py_None || PyLong_CheckExact(reply))
        return 1;
    if (!PyList_CheckExact(reply) || PyList_GET_SIZE(reply) > MOST_ELEMENTS)
        return 0;
    Py_ssize_t size = 0;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(reply); at++) {
        PyObject *each = PyList_GET_ITEM(reply, at);
        if (PyBytes_CheckExact(each)) {
            size += PyBytes_GET_SIZE(each);
            if (size >= LARGE_BYTES)
                return 0;
        } else if (each != Py_None && !PyLong_CheckExact(each))
            return 0;
    }
    return 1;
}

static void push_plain(Crossing *self, lua_State *state, PyObject *value)
{
    if (PyBytes_Check(value))
        lua.pushlstring(state, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    else if (value != Py_None) {
        int is_beyond;
        long long number = PyLong_AsLongLongAndOverflow(value, &is_beyond);
        lua.pushnumber(state, is_beyond ? PyLong_AsDouble(value) : (double)number);
    } else if (self->protocol == 2)
        lua.pushboolean(state, 0);
    else
        lua.pushnil(state);
}

static void push_easy(Crossing *self, lua_State *state, PyObject *reply)
{
    if (Py_TYPE(reply) == (PyTypeObject *)status_type) {
        lua.createtable(state, 0, 1);
        lua.pushlstring(state, "ok", 2);
        push_plain(self, state, reply);
        lua.rawset(state, -3);
    } else if (PyList_CheckExact(reply)) {
        Py_ssize_t size = PyList_GET_SIZE(reply);
        lua.createtable(state, (int)size, 0);
        for (Py_ssize_t at = 0; at < size; at++) {
            push_plain(self, state, PyList_GET_ITEM(reply, at));
            lua.rawseti(state, -2, (int)at + 1);
        }
    } else
        push_plain(self, state, reply);
}

static PyObject *known_word(Crossing *self, const char *text, size_t size)
{
    /* The first word of a call: it is mostly one of a few, and Python finds the very same object sooner. */
    unsigned place = size > 0 ? ((unsigned char)text[0] * 7 + (unsigned char)text[size - 1] * 3 + size) % KNOWN_WORDS : 0;
    PyObject *word = self->known[place];
    if (word == NULL || (size_t)PyBytes_GET_SIZE(word) != size || memcmp(PyBytes_AS_STRING(word), text, size) != 0) {
        word = PyBytes_FromStringAndSize(text, size);
        if (word == NULL || size > 32)
            return word;
        Py_XSETREF(self->known[place], word);
    }
    return Py_NewRef(word);
}

static const char no_memory[] = "ERR not enough memory";

static PyObject *number_word(double number)
{
    /* As "%.17g" spells it, which takes long: what is whole and has no exponent is spelled here. */
    char text[40], *begin = text + sizeof text;
    if (number < LARGEST && number > -LARGEST && number == trunc(number) && (number != 0 || !signbit(number))) {
        uint64_t left = (uint64_t)fabs(number);
        do
            *--begin = (char)('0' + left % 10);
        while ((left /= 10) != 0);
        if (number < 0)
            *--begin = '-';
        return PyBytes_FromStringAndSize(begin, text + sizeof text - begin);
    }
    return PyBytes_FromStringAndSize(text, snprintf(text, sizeof text, "%.17g", number));
}

static PyObject *words_of(Crossing *self, lua_State *state, int count, const char **wrong)
{
    /* The arguments of a call. NULL: `wrong` says why. */
    size_t left = self->most_bytes;
    PyObject *words = PyList_New(count);
    *wrong = no_memory;
    for (int at = 0; words != NULL && at < count; at++) {
        int type = lua.type(state, at + 1);
        PyObject *word = NULL;
        if (type == STRING) {
            size_t size;
            const char *text = lua.tolstring(state, at + 1, &size);
            if (size > left) {
                Py_CLEAR(words);
                break;
            }
            left -= size;
            word = at == 0 ? known_word(self, text, size) : PyBytes_FromStringAndSize(text, size);
        } else if (type == NUMBER) /* tolstring would spell it shorter */
            word = number_word(lua.tonumber(state, at + 1));
        else
            *wrong = "ERR Lua redis lib command arguments must be strings or integers";
        if (word == NULL) {
            Py_CLEAR(words);
            break;
        }
        PyList_SET_ITEM(words, at, word);
    }
    if (words == NULL)
        PyErr_Clear();
    return words;
}

static int push_refusal(Crossing *self, lua_State *state, PyObject *refusal)
{
    /* Whether there was memory for it. It holds its text, and somebody else holds it. */
    PyObject *kind = PyObject_GetAttrString(refusal, "kind"), *text = PyObject_GetAttrString(refusal, "text");
    int is_told = kind != NULL && text != NULL && PyBytes_Check(text);
    Py_XDECREF(kind);
    Py_XDECREF(text);
    if (is_told)
        push_failed(self, state, kind == Py_None ? -1 : kind == Py_True, PyBytes_AS_STRING(text),
                    PyBytes_GET_SIZE(text));
    return is_told;
}

static int answer(lua_State *state, int is_protected)
{
    static const char nothing[] = "ERR Please specify at least one argument for this redis lib call";
    const char *wrong;
    Crossing *self = lua.touserdata(state, UPVALUE(1));
    if (!self->is_running)
        return raise_text(state, "ERR redis.call/pcall can only be called inside a script invocation");
    int count = lua.gettop(state);
    if (used_bytes(state) > self->most_bytes) {
        PyObject *has_room = PyObject_CallNoArgs(self->has_room);
        int is_short = has_room != Py_True;
        Py_XDECREF(has_room);
        PyErr_Clear();
        if (is_short) {
            push_failed(self, state, 0, no_memory, sizeof no_memory - 1);
            lua.call(state, 2, 1);
            return is_protected ? 1 : lua.error(state);
        }
    }
    PyObject *words = words_of(self, state, count, &wrong), *reply = NULL;
    if (words != NULL && count > 0)
        reply = PyObject_CallOneArg(self->execute, words);
    int is_worded = words != NULL;
    Py_XDECREF(words);
    if (reply != NULL) {
        Py_XSETREF(self->left, reply);
        if (Py_TYPE(reply) != (PyTypeObject *)refusal_type) {
            if (is_easy(reply)) {
                push_easy(self, state, reply);
                Py_CLEAR(self->left);
            } else {
                lua.rawgeti(state, REGISTRY, self->fetch);
                lua.pushboolean(state, is_protected);
                lua.call(state, 1, 1);
            }
            return 1;
        }
        if (!push_refusal(self, state, reply)) {
            PyErr_Clear();
            push_failed(self, state, 0, no_memory, sizeof no_memory - 1);
        }
        Py_CLEAR(self->left);
    } else if (!is_worded)
        push_failed(self, state, 0, wrong, strlen(wrong));
    else if (count == 0)
        push_failed(self, state, 0, nothing, sizeof nothing - 1);
    else {
        PyErr_WriteUnraisable(self->execute);
        push_failed(self, state, 0, no_memory, sizeof no_memory - 1);
    }
    lua.call(state, 2, 1);
    return is_protected ? 1 : lua.error(state);
}

static int redis_call(lua_State *state) { return answer(state, 0); }

static int redis_pcall(lua_State *state) { return answer(state, 1); }

/* -- what a script returns */

static PyObject *reply_of(lua_State *state, int nested, size_t *room);

static int takes(size_t *room, size_t size)
{
    /* Whether there is room for so many bytes more. */
    if (size > *room)
        return 0;
    *room -= size;
    return 1;
}

static PyObject *number_of(double number)
{
    return number < LARGEST && number > -LARGEST ? PyLong_FromDouble(trunc(number)) : NULL;
}

static PyObject *status_of(lua_State *state, size_t *room)
{
    /* Of the table below {"ok", text}, which are taken off: if it holds no more, and a line says it. */
    PyObject *text = NULL, *made;
    size_t size;
    const char *name = lua.tolstring(state, -2, &size);
    if (size == 2 && memcmp(name, "ok", 2) == 0 && lua.type(state, -1) == STRING) {
        const char *line = lua.tolstring(state, -1, &size);
        if (takes(room, size) && memchr(line, 0, size) == NULL && memchr(line, '\r', size) == NULL &&
            memchr(line, '\n', size) == NULL)
            text = PyBytes_FromStringAndSize(line, size);
    }
    lua.settop(state, -2);
    if (text == NULL) {
        lua.settop(state, -2);
        return NULL;
    }
    if (lua.next(state, -2)) {
        lua.settop(state, -3);
        Py_DECREF(text);
        return NULL;
    }
    made = PyObject_CallOneArg(status_type, text);
    Py_DECREF(text);
    return made;
}

static PyObject *array_of(lua_State *state, int nested, size_t *room)
{
    /* The table on top, if it has nothing but elements without a gap. A proxy is empty, and has a metatable. */
    PyObject *elements = NULL;
    lua.pushnil(state);
    for (int place = 1; lua.next(state, -2); place++) {
        PyObject *element = NULL;
        if (lua.type(state, -2) == NUMBER && lua.tonumber(state, -2) == place) {
            if (elements == NULL)
                elements = PyList_New(0);
            if (elements != NULL && takes(room, ELEMENT_BYTES))
                element = reply_of(state, nested + 1, room);
        } else if (place == 1 && lua.type(state, -2) == STRING)
            return status_of(state, room);
        lua.settop(state, -2);
        if (element == NULL || PyList_Append(elements, element) < 0) {
            lua.settop(state, -2);
            Py_XDECREF(element);
            Py_XDECREF(elements);
            return NULL;
        }
        Py_DECREF(element);
    }
    if (elements == NULL && lua.getmetatable(state, -1))
        lua.settop(state, -2);
    else if (elements == NULL)
        elements = PyList_New(0);
    return elements;
}

static PyObject *reply_of(lua_State *state, int nested, size_t *room)
{
    /* What is on top, as a reply; it stays. NULL, perhaps with an exception: it is not so easily made one. `room` is for
       what is within tables. */
    size_t size;
    const char *text;
    switch (lua.type(state, -1)) {
    case STRING:
        text = lua.tolstring(state, -1, &size);
        return nested == 0 || takes(room, size) ? PyBytes_FromStringAndSize(text, size) : NULL;
    case NUMBER:
        return number_of(lua.tonumber(state, -1));
    case BOOLEAN:
        if (lua.toboolean(state, -1))
            return PyLong_FromLong(1);
        Py_RETURN_NONE;
    case NIL:
        Py_RETURN_NONE;
    case TABLE:
        return nested < MOST_NESTED ? array_of(state, nested, room) : NULL;
    }
    return NULL;
}

static PyObject *value_of(lua_State *state, int at)
{
    /* One of the values that `finish` returns. */
    size_t size;
    const char *text;
    switch (lua.type(state, at)) {
    case STRING:
        text = lua.tolstring(state, at, &size);
        return PyBytes_FromStringAndSize(text, size);
    case NUMBER:
        return PyLong_FromDouble(lua.tonumber(state, at));
    case BOOLEAN:
        return PyBool_FromLong(lua.toboolean(state, at));
    }
    Py_RETURN_NONE;
}

/* -- running */

typedef struct {
    Crossing *self;
    int called;       /* in Lua's registry */
    int answered;     /* the protocol of the reply */
    int takes_tables; /* it is a function, whose arguments are what scripts find as KEYS and ARGV */
    Py_ssize_t first_argument;
    PyObject *words;  /* of the request */
    PyObject *outcome;
} Run;

static void push_words(lua_State *state, PyObject *words, Py_ssize_t first, Py_ssize_t end)
{
    lua.createtable(state, (int)(end - first), 0);
    for (Py_ssize_t at = first; at < end; at++) {
        PyObject *word = PyList_GET_ITEM(words, at);
        lua.pushlstring(state, PyBytes_AS_STRING(word), PyBytes_GET_SIZE(word));
        lua.rawseti(state, -2, (int)(at - first) + 1);
    }
}

static void set_global(lua_State *state, int name, int value)
{
    /* Of what scripts find: the table at 1. */
    lua.rawgeti(state, REGISTRY, name);
    lua.pushvalue(state, value);
    lua.rawset(state, 1);
}

static int run_protected(lua_State *state)
{
    enum { GLOBALS = 1, KEYS, ARGV, NOTHING, HANDLER };
    Run *run = lua.touserdata(state, 1);
    Crossing *self = run->self;
    if (!lua.checkstack(state, 3 * MOST_NESTED + 40))
        return raise_text(state, "ERR not enough memory");
    if (self->is_disturbed) {
        lua.rawgeti(state, REGISTRY, self->reset);
        lua.call(state, 0, 0);
        self->is_disturbed = 0;
    }
    lua.settop(state, 0);
    lua.rawgeti(state, REGISTRY, self->globals);
    push_words(state, run->words, 3, run->first_argument);
    push_words(state, run->words, run->first_argument, PyList_GET_SIZE(run->words));
    lua.pushnil(state);
    lua.rawgeti(state, REGISTRY, self->tell_error);
    if (!run->takes_tables) {
        set_global(state, self->keys, KEYS);
        set_global(state, self->argv, ARGV);
    }
    lua.rawgeti(state, REGISTRY, run->called);
    if (run->takes_tables) {
        lua.pushvalue(state, KEYS);
        lua.pushvalue(state, ARGV);
    }
    self->is_running = 1;
    int is_well = lua.pcall(state, run->takes_tables ? 2 : 0, 1, HANDLER) == 0;
    self->is_running = 0;
    if (!run->takes_tables) {
        set_global(state, self->keys, NOTHING);
        set_global(state, self->argv, NOTHING);
    }
    self->is_disturbed = !is_well || self->protocol != 2;
    if (!self->is_disturbed) {
        size_t room = MOST_RETURNED;
        run->outcome = reply_of(state, 0, &room);
        if (run->outcome != NULL)
            return 0;
        PyErr_Clear(); /* sandbox.lua's way needs more memory, but all of it is Lua's; it may end there, too */
        self->is_disturbed = 1;
    }
    int value = lua.gettop(state);
    lua.rawgeti(state, REGISTRY, self->finish);
    lua.pushboolean(state, is_well);
    lua.pushvalue(state, value);
    lua.pushnumber(state, run->answered);
    lua.call(state, 3, ALL_RESULTS);
    int results = lua.gettop(state) - value;
    PyObject *found = PyTuple_New(results);
    for (int at = 0; found != NULL && at < results; at++) {
        PyObject *each = value_of(state, value + 1 + at);
        if (each == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, at, each);
    }
    if (found != NULL && results == 1) {
        run->outcome = Py_NewRef(PyTuple_GET_ITEM(found, 0));
        Py_DECREF(found);
    } else
        run->outcome = found;
    return 0;
}

typedef struct {
    PyObject_HEAD
    Crossing *crossing;
    int called; /* in Lua's registry */
} Callable;

static PyTypeObject CallableType;

static PyObject *crossing_run(Crossing *self, PyObject *const *args, Py_ssize_t count, int takes_tables)
{
    /* (what is called, the protocol of the reply, the request, of which so many words behind the third are keys) */
    if (count != 4 || Py_TYPE(args[0]) != &CallableType || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "a callable of this crossing, a protocol, a list of words and a number of keys are needed");
        return NULL;
    }
    long protocol = PyLong_AsLong(args[1]), keys = PyLong_AsLong(args[3]);
    Py_ssize_t size = PyList_GET_SIZE(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (self->state == NULL || self->is_running || ((Callable *)args[0])->crossing != self || keys < 0 ||
        keys > size - 3) {
        PyErr_SetString(PyExc_ValueError, "this can't be run here and now");
        return NULL;
    }
    for (Py_ssize_t at = 3; at < size; at++)
        if (!PyBytes_Check(PyList_GET_ITEM(args[2], at))) {
            PyErr_SetString(PyExc_TypeError, "words are bytes");
            return NULL;
        }
    Run run = {self, ((Callable *)args[0])->called, (int)protocol, takes_tables, 3 + keys, args[2], NULL};
    lua.rawgeti(self->state, REGISTRY, self->run);
    lua.pushlightuserdata(self->state, &run);
    if (lua.pcall(self->state, 1, 0, 0) != 0) {
        lua.settop(self->state, -2);
        self->is_running = 0;
        self->is_disturbed = 1;
        Py_CLEAR(run.outcome);
        return Py_BuildValue("(Oy)", Py_False, "not enough memory");
    }
    return run.outcome; /* NULL: there is an exception */
}

static PyObject *crossing_run_script(Crossing *self, PyObject *const *args, Py_ssize_t count)
{
    return crossing_run(self, args, count, 0);
}

static PyObject *crossing_run_function(Crossing *self, PyObject *const *args, Py_ssize_t count)
{
    return crossing_run(self, args, count, 1);
}

static PyObject *crossing_used_bytes(Crossing *self, PyObject *unused)
{
    return PyLong_FromSize_t(self->state != NULL ? used_bytes(self->state) : 0);
}

static PyObject *crossing_take(Crossing *self, PyObject *unused)
{
    PyObject *left = self->left;
    self->left = NULL;
    return left != NULL ? left : Py_NewRef(Py_None);
}

/* -- MessagePack */

typedef struct {
    const unsigned char *at, *end;
} Packed;

static uint64_t taken(Packed *packed, int count)
{
    uint64_t number = 0;
    while (count-- > 0)
        number = number << 8 | *packed->at++;
    return number;
}

static int push_unpacked(lua_State *state, Packed *packed, int nested);

static int push_elements(lua_State *state, Packed *packed, uint64_t count, int nested)
{
    lua.createtable(state, 0, 0); /* it grows as by an assignment: `pairs` shows the same order */
    for (uint64_t at = 1; at <= count; at++) {
        if (!push_unpacked(state, packed, nested + 1))
            return 0;
        lua.rawseti(state, -2, (int)at);
    }
    return 1;
}

static int push_members(lua_State *state, Packed *packed, uint64_t count, int nested)
{
    int may_be_nil = count <= MOST_WITH_NIL;
    lua.createtable(state, 0, 0);
    for (; count > 0; count--) {
        if (!push_unpacked(state, packed, nested + 1) || lua.type(state, -1) == NIL)
            return 0;
        if (lua.type(state, -1) == NUMBER && isnan(lua.tonumber(state, -1)))
            return 0;
        if (!push_unpacked(state, packed, nested + 1) || (lua.type(state, -1) == NIL && !may_be_nil))
            return 0;
        lua.rawset(state, -3); /* a nil, too: `pairs` shows the same order as after an assignment */
    }
    return 1;
}

static int push_unpacked(lua_State *state, Packed *packed, int nested)
{
    /* The next value. Whether it was a plain one; else there may be several, of which nothing is said. */
    static const signed char lengths[32] = { /* bytes behind the first, of 0xc0 and so on */
        0, -1, 0, 0, -1, -1, -1, -1, -1, -1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, -1, -1, -1, -1, -1, 1, 2, 4, 2, 4, 2, 4,
    };
    if (packed->at == packed->end || nested > MOST_NESTED)
        return 0;
    unsigned first = *packed->at++;
    uint64_t number = 0;
    if (first < 0x80 || first >= 0xe0) {
        lua.pushnumber(state, (signed char)first);
        return 1;
    }
    if (first < 0x90)
        return push_members(state, packed, first - 0x80, nested);
    if (first < 0xa0)
        return push_elements(state, packed, first - 0x90, nested);
    if (first < 0xc0)
        number = first - 0xa0;
    else {
        int length = lengths[first - 0xc0];
        if (length < 0 || packed->end - packed->at < length)
            return 0;
        number = taken(packed, length);
    }
    switch (first) {
    case 0xc0:
        lua.pushnil(state);
        return 1;
    case 0xc2:
    case 0xc3:
        lua.pushboolean(state, first == 0xc3);
        return 1;
    case 0xca: {
        float found;
        uint32_t bits = (uint32_t)number;
        memcpy(&found, &bits, sizeof found);
        lua.pushnumber(state, found);
        return !isnan(found);
    }
    case 0xcb: {
        double found;
        memcpy(&found, &number, sizeof found);
        lua.pushnumber(state, found);
        return !isnan(found);
    }
    case 0xcc:
    case 0xcd:
    case 0xce:
        lua.pushnumber(state, (double)number);
        return 1;
    case 0xd0:
        lua.pushnumber(state, (int8_t)number);
        return 1;
    case 0xd1:
        lua.pushnumber(state, (int16_t)number);
        return 1;
    case 0xd2:
        lua.pushnumber(state, (int32_t)number);
        return 1;
    case 0xcf: /* Redis reads it so, too */
    case 0xd3:
        lua.pushnumber(state, (double)(int64_t)number);
        return 1;
    case 0xdc:
    case 0xdd:
        return number <= (uint64_t)(packed->end - packed->at) && push_elements(state, packed, number, nested);
    case 0xde:
    case 0xdf:
        return number <= (uint64_t)(packed->end - packed->at) && push_members(state, packed, number, nested);
    }
    if ((uint64_t)(packed->end - packed->at) < number)
        return 0;
    lua.pushlstring(state, (const char *)packed->at, number);
    packed->at += number;
    return 1;
}

static int unpacked(lua_State *state)
{
    /* (text) -> true and what it is, if it is one plain value and no more, of a text that is soon read; else cmsgpack.lua
       says what it is, or why it is nothing. */
    size_t size;
    if (lua.type(state, 1) != STRING)
        return 0;
    const char *text = lua.tolstring(state, 1, &size);
    if (size > MOST_PACKED)
        return 0;
    Packed packed = {(const unsigned char *)text, (const unsigned char *)text + size};
    if (!lua.checkstack(state, 3 * MOST_NESTED + 10))
        return 0;
    lua.pushboolean(state, 1);
    return push_unpacked(state, &packed, 0) && packed.at == packed.end ? 2 : 0;
}

/* -- what is kept of Lua's */

static int keep(lua_State *state)
{
    lua.settop(state, 1);
    lua.pushnumber(state, lua.ref(state, REGISTRY));
    return 1;
}

static int runs(lua_State *state)
{
    lua.pushboolean(state, ((Crossing *)lua.touserdata(state, UPVALUE(1)))->is_running);
    return 1;
}

static int begin(lua_State *state)
{
    /* (globals, tell_error, finish, failed, fetch, reset) -> redis.call, redis.pcall, keep, runs */
    Crossing *self = lua.touserdata(state, UPVALUE(1));
    int *kept[] = {&self->globals, &self->tell_error, &self->finish, &self->failed, &self->fetch, &self->reset};
    lua_CFunction made[] = {redis_call, redis_pcall, keep, runs};
    for (int at = 0; at < 6; at++) {
        lua.pushvalue(state, at + 1);
        *kept[at] = lua.ref(state, REGISTRY);
    }
    lua.pushcclosure(state, run_protected, 0);
    self->run = lua.ref(state, REGISTRY);
    lua.pushlstring(state, "KEYS", 4);
    self->keys = lua.ref(state, REGISTRY);
    lua.pushlstring(state, "ARGV", 4);
    self->argv = lua.ref(state, REGISTRY);
    for (int at = 0; at < 4; at++) {
        lua.pushlightuserdata(state, self);
        lua.pushcclosure(state, made[at], 1);
    }
    return 4;
}

__attribute__((visibility("default"))) int rlite_crossing(lua_State *state)
{
    /* Lua's package.loadlib finds it: (where the Crossing is) -> `begin`, `unpacked` */
    size_t size;
    const char *address = lua.tolstring(state, 1, &size);
    Crossing *self = address != NULL ? (Crossing *)(uintptr_t)strtoull(address, NULL, 10) : NULL;
    if (self == NULL)
        return 0;
    self->state = state;
    lua.pushlightuserdata(state, self);
    lua.pushcclosure(state, begin, 1);
    lua.pushcclosure(state, unpacked, 0);
    return 2;
}

static PyObject *crossing_callable(Crossing *self, PyObject *number)
{
    long called = PyLong_AsLong(number);
    if (called == -1 && PyErr_Occurred())
        return NULL;
    Callable *made = PyObject_GC_New(Callable, &CallableType);
    if (made != NULL) {
        made->crossing = (Crossing *)Py_NewRef(self);
        made->called = (int)called;
        PyObject_GC_Track(made);
    }
    return (PyObject *)made;
}

static int callable_traverse(Callable *self, visitproc visit, void *arg)
{
    Py_VISIT(self->crossing);
    return 0;
}

static int callable_clear(Callable *self)
{
    if (self->crossing != NULL && self->crossing->state != NULL)
        lua.unref(self->crossing->state, REGISTRY, self->called);
    Py_CLEAR(self->crossing);
    return 0;
}

static void callable_dealloc(Callable *self)
{
    PyObject_GC_UnTrack(self);
    callable_clear(self);
    PyObject_GC_Del(self);
}

static PyTypeObject CallableType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rlite_pubsub.engine.scripts._crossing.Callable",
    .tp_basicsize = sizeof(Callable),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)callable_dealloc,
    .tp_traverse = (traverseproc)callable_traverse,
    .tp_clear = (inquiry)callable_clear,
};

static PyObject *crossing_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *runtime, *execute, *has_room;
    Py_ssize_t most_bytes;
    if (!PyArg_ParseTuple(args, "OOOn", &runtime, &execute, &has_room, &most_bytes))
        return NULL;
    Crossing *self = (Crossing *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->runtime = Py_NewRef(runtime);
        self->execute = Py_NewRef(execute);
        self->has_room = Py_NewRef(has_room);
        self->most_bytes = most_bytes;
        self->protocol = 2;
    }
    return (PyObject *)self;
}

static int crossing_traverse(Crossing *self, visitproc visit, void *arg)
{
    Py_VISIT(self->runtime);
    Py_VISIT(self->execute);
    Py_VISIT(self->has_room);
    Py_VISIT(self->left);
    return 0;
}

static int crossing_clear(Crossing *self)
{
    self->state = NULL;
    Py_CLEAR(self->execute);
    Py_CLEAR(self->has_room);
    for (int at = 0; at < KNOWN_WORDS; at++)
        Py_CLEAR(self->known[at]);
    Py_CLEAR(self->left);
    Py_CLEAR(self->runtime);
    return 0;
}

static void crossing_dealloc(Crossing *self)
{
    PyObject_GC_UnTrack(self);
    crossing_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *crossing_address(Crossing *self, void *unused)
{
    return PyBytes_FromFormat("%zu", (size_t)(uintptr_t)self);
}

static PyMethodDef crossing_methods[] = {
    {"run_script", (PyCFunction)(void (*)(void))crossing_run_script, METH_FASTCALL, NULL},
    {"run_function", (PyCFunction)(void (*)(void))crossing_run_function, METH_FASTCALL, NULL},
    {"used_bytes", (PyCFunction)crossing_used_bytes, METH_NOARGS, NULL},
    {"take", (PyCFunction)crossing_take, METH_NOARGS, NULL},
    {"callable", (PyCFunction)crossing_callable, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef crossing_members[] = {
    {"protocol", T_INT, offsetof(Crossing, protocol), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef crossing_properties[] = {
    {"address", (getter)crossing_address, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject CrossingType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rlite_pubsub.engine.scripts._crossing.Crossing",
    .tp_basicsize = sizeof(Crossing),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = crossing_new,
    .tp_dealloc = (destructor)crossing_dealloc,
    .tp_traverse = (traverseproc)crossing_traverse,
    .tp_clear = (inquiry)crossing_clear,
    .tp_methods = crossing_methods,
    .tp_members = crossing_members,
    .tp_getset = crossing_properties,
};

static PyObject *find_lua(PyObject *unused, PyObject *args)
{
    /* (lupa's library, Status, Refusal): whether all that is needed is there. */
    const char *path;
    PyObject *status, *refusal;
    if (!PyArg_ParseTuple(args, "sO!O!", &path, &PyType_Type, &status, &PyType_Type, &refusal))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        Py_RETURN_FALSE;
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
        void *found = dlsym(library, functions[at].name);
        if (found == NULL)
            Py_RETURN_FALSE;
        memcpy(functions[at].place, &found, sizeof found);
    }
    Py_XSETREF(status_type, Py_NewRef(status));
    Py_XSETREF(refusal_type, Py_NewRef(refusal));
    Py_RETURN_TRUE; /* the library stays open: lupa is never unloaded */
}

static PyMethodDef module_methods[] = {
    {"find_lua", find_lua, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_crossing", "Between Python and Lua.", -1, module_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__crossing(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddType(made, &CrossingType) < 0 || PyModule_AddType(made, &CallableType) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
