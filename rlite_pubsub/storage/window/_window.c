/* Python's side of the window: window.py says what each call promises, and plain.py does the same without a compiler. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LARGE_BYTES (64 << 10)

static ssize_t write_log(int fd, const void *bytes, size_t size, off_t at)
{
    if (size < LARGE_BYTES)
        return pwrite(fd, bytes, size, at);
    ssize_t written;
    int error;
    Py_BEGIN_ALLOW_THREADS
    written = pwrite(fd, bytes, size, at);
    error = errno;
    Py_END_ALLOW_THREADS
    errno = error;
    return written;
}
#define WRITE_LOG write_log

#include "core.h"
#include "view.h"

static const char index_magic[8] = "RLITEIDX";

typedef struct {
    PyObject_HEAD
    Window window;
    size_t index_bytes;
    int users; /* views, and an append that has given Python's lock away */
    int is_writing;
} WindowObject;

static PyTypeObject *window_type, *view_type;

static PyObject *failed(int status)
{
    if (status == -ENOMEM)
        return PyErr_NoMemory();
    errno = -status;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static int is_open(WindowObject *self)
{
    if (!self->window.index)
        PyErr_SetString(PyExc_ValueError, "the window is closed");
    return self->window.index != NULL;
}

static void unmap(WindowObject *self)
{
    if (self->window.index)
        munmap(self->window.index, self->index_bytes);
    if (self->window.log)
        munmap((void *)self->window.log, self->window.log_bytes);
    free(self->window.record);
    memset(&self->window, 0, sizeof self->window);
    self->window.log_fd = -1;
}

static PyObject *window_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int log_fd, index_fd;
    static char *names[] = {"log_fd", "index_fd", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ii", names, &log_fd, &index_fd))
        return NULL;
    struct stat file;
    uint8_t head[INDEX_HEAD_BYTES];
    if (fstat(index_fd, &file))
        return PyErr_SetFromErrno(PyExc_OSError);
    if (file.st_size < (off_t)sizeof head || pread(index_fd, head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head, index_magic, sizeof index_magic)) {
        PyErr_SetString(PyExc_ValueError, "this is no index of a window");
        return NULL;
    }
    uint64_t slots = get64(head + 32), log_bytes = get64(head + 56), room = (uint64_t)file.st_size - INDEX_HEAD_BYTES;
    if (!slots || slots & (slots - 1) || room / 8 < slots || log_bytes < LOG_HEAD_BYTES ||
        log_bytes > (uint64_t)UNIT << 32) {
        PyErr_SetString(PyExc_ValueError, "the index of the window is damaged");
        return NULL;
    }
    WindowObject *self = (WindowObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->window.log_fd = log_fd;
    self->window.slots = slots;
    self->window.number = get64(head + 16);
    self->window.seed[0] = get64(head + 40), self->window.seed[1] = get64(head + 48);
    self->index_bytes = INDEX_HEAD_BYTES + slots * 8;
    void *index = mmap(NULL, self->index_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, index_fd, 0);
    if (index != MAP_FAILED)
        self->window.index = index;
    void *log = mmap(NULL, log_bytes, PROT_READ, MAP_SHARED, log_fd, 0);
    if (log != MAP_FAILED)
        self->window.log = log, self->window.log_bytes = log_bytes;
    if (!self->window.index || !self->window.log) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void window_dealloc(WindowObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    unmap(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyObject *window_close(WindowObject *self, PyObject *unused)
{
    if (self->users) {
        PyErr_SetString(PyExc_BufferError, "the window is in use");
        return NULL;
    }
    unmap(self);
    Py_RETURN_NONE;
}

static int is_key(PyObject *key)
{
    if (!PyBytes_Check(key)) {
        PyErr_Format(PyExc_TypeError, "a key must be bytes, not '%s'", Py_TYPE(key)->tp_name);
        return 0;
    }
    return 1;
}

/* A tip as Python has it: a snapshot. */
static int end_of_snapshot(WindowObject *self, PyObject *snapshot, uint64_t *end)
{
    uint64_t tip = PyLong_AsUnsignedLongLong(snapshot);
    if (tip == (uint64_t)-1 && PyErr_Occurred())
        return 0;
    *end = end_of(tip);
    if (*end < LOG_HEAD_BYTES || *end > end_of(load(word_at(&self->window, TIP)))) {
        PyErr_SetString(PyExc_ValueError, "this snapshot is of another window");
        return 0;
    }
    return 1;
}

static PyObject *value_of_row(const Window *window, uint64_t row)
{
    uint32_t size = row_value_bytes(window, row);
    if (size == REMOVED)
        Py_RETURN_FALSE;
    return PyBytes_FromStringAndSize((const char *)row_value(window, row), size);
}

static PyObject *key_of_row(const Window *window, uint64_t row)
{
    return PyBytes_FromStringAndSize((const char *)row_key(window, row), row_key_bytes(window, row));
}

static PyObject *window_get_method(WindowObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t end;
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "get() takes a snapshot and a key, not %zd arguments", count);
        return NULL;
    }
    if (!is_open(self) || !is_key(args[1]) || !end_of_snapshot(self, args[0], &end))
        return NULL;
    uint64_t row = window_get(&self->window, end, (const uint8_t *)PyBytes_AS_STRING(args[1]), PyBytes_GET_SIZE(args[1]));
    if (!row)
        Py_RETURN_NONE;
    return value_of_row(&self->window, row);
}

static PyObject *window_append_method(WindowObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyDict_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "append() takes a dict of rows, the number of the commit, and its time in ms");
        return NULL;
    }
    uint64_t commit = PyLong_AsUnsignedLongLong(args[1]), time_ms = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred() || !is_open(self))
        return NULL;
    if (self->is_writing) {
        PyErr_SetString(PyExc_BufferError, "the window is being written");
        return NULL;
    }
    if (!window_is_whole(&self->window)) {
        PyErr_SetString(PyExc_RuntimeError, "the window must be repaired first");
        return NULL;
    }
    Py_ssize_t size = PyDict_GET_SIZE(args[0]), position = 0;
    if (size > UINT32_MAX)
        return PyErr_NoMemory();
    Row few[16], *rows = size <= 16 ? few : PyMem_Malloc(size * sizeof *rows), *row = rows;
    if (!rows)
        return PyErr_NoMemory();
    PyObject *key, *value;
    int status = -EINVAL;
    while (PyDict_Next(args[0], &position, &key, &value)) {
        if (!is_key(key))
            goto done;
        if (PyBytes_GET_SIZE(key) > MOST_KEY_BYTES || !PyBytes_GET_SIZE(key)) {
            PyErr_Format(PyExc_ValueError, "a key has 1 to %d bytes, not %zd", MOST_KEY_BYTES, PyBytes_GET_SIZE(key));
            goto done;
        }
        row->key = (const uint8_t *)PyBytes_AS_STRING(key), row->key_bytes = (uint16_t)PyBytes_GET_SIZE(key);
        row->value = NULL, row->value_bytes = REMOVED;
        if (value != Py_None) {
            if (!PyBytes_Check(value)) {
                PyErr_Format(PyExc_TypeError, "a value must be bytes or None, not '%s'", Py_TYPE(value)->tp_name);
                goto done;
            }
            if (PyBytes_GET_SIZE(value) >= REMOVED) {
                PyErr_SetString(PyExc_ValueError, "a value has less than 4 GiB");
                goto done;
            }
            row->value = (const uint8_t *)PyBytes_AS_STRING(value), row->value_bytes = (uint32_t)PyBytes_GET_SIZE(value);
        }
        row++;
    }
    self->users++, self->is_writing = 1;
    status = window_append(&self->window, rows, (uint32_t)size, commit, time_ms);
    self->users--, self->is_writing = 0;
    if (status < 0)
        failed(status);
done:
    if (rows != few)
        PyMem_Free(rows);
    return status < 0 ? NULL : PyBool_FromLong(status != WINDOW_FULL);
}

static PyObject *window_repair_method(WindowObject *self, PyObject *unused)
{
    if (!is_open(self))
        return NULL;
    if (self->is_writing) {
        PyErr_SetString(PyExc_BufferError, "the window is being written");
        return NULL;
    }
    struct stat file;
    if (fstat(self->window.log_fd, &file))
        return PyErr_SetFromErrno(PyExc_OSError);
    int status = window_repair(&self->window, (uint64_t)file.st_size);
    if (status < 0)
        return failed(status);
    Py_RETURN_NONE;
}

static PyObject *window_is_whole_method(WindowObject *self, PyObject *unused)
{
    return is_open(self) ? PyBool_FromLong(window_is_whole(&self->window)) : NULL;
}

/* The places of two snapshots, the first of which may be 0: the window's begin. */
static int snapshots(WindowObject *self, PyObject *const *args, Py_ssize_t count, uint64_t *from, uint64_t *to)
{
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "two snapshots are needed, not %zd", count);
        return 0;
    }
    uint64_t begin = PyLong_AsUnsignedLongLong(args[0]);
    if (PyErr_Occurred())
        return 0;
    *from = LOG_HEAD_BYTES;
    return is_open(self) && (!begin || end_of_snapshot(self, args[0], from)) && end_of_snapshot(self, args[1], to);
}

static PyObject *window_changed(WindowObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t from, to;
    if (!snapshots(self, args, count, &from, &to))
        return NULL;
    const Window *window = &self->window;
    PyObject *keys = PyList_New(0);
    for (uint64_t at = from; keys && at < to; at += record_bytes(window, at)) {
        uint64_t row = first_row(at);
        for (uint32_t rows = record_rows(window, at); rows; rows--, row = next_row(window, row)) {
            PyObject *key = key_of_row(window, row);
            if (!key || PyList_Append(keys, key)) {
                Py_XDECREF(key);
                Py_CLEAR(keys);
                return NULL;
            }
            Py_DECREF(key);
        }
    }
    return keys;
}

/* A row as Python has it: its key, and its value, which is None if it was removed. */
static PyObject *pair_of_row(const Window *window, uint64_t row)
{
    PyObject *key = key_of_row(window, row), *value = NULL;
    if (key)
        value = row_value_bytes(window, row) == REMOVED ? Py_NewRef(Py_None) : value_of_row(window, row);
    PyObject *pair = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return pair;
}

static PyObject *rows_of_record(const Window *window, uint64_t at)
{
    PyObject *rows = PyList_New(record_rows(window, at));
    uint64_t row = first_row(at);
    for (Py_ssize_t number = 0; rows && number < PyList_GET_SIZE(rows); number++, row = next_row(window, row)) {
        PyObject *pair = pair_of_row(window, row);
        if (!pair)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, number, pair);
    }
    return rows;
}

static PyObject *window_records(WindowObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t from, to;
    if (!snapshots(self, args, count, &from, &to))
        return NULL;
    const Window *window = &self->window;
    PyObject *records = PyList_New(0);
    for (uint64_t at = from; records && at < to; at += record_bytes(window, at)) {
        PyObject *rows = rows_of_record(window, at), *record = NULL;
        if (rows)
            record = Py_BuildValue("KKN", (unsigned long long)get64(window->log + at + 8),
                                   (unsigned long long)get64(window->log + at + 16), rows);
        if (!record || PyList_Append(records, record)) {
            Py_XDECREF(record);
            Py_CLEAR(records);
            return NULL;
        }
        Py_DECREF(record);
    }
    return records;
}

static PyObject *get_word(WindowObject *self, void *at)
{
    return is_open(self) ? PyLong_FromUnsignedLongLong(load(word_at(&self->window, (size_t)at))) : NULL;
}

static int set_word(WindowObject *self, PyObject *value, void *at)
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "a window keeps this");
        return -1;
    }
    uint64_t number = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() || !is_open(self))
        return -1;
    store(word_at(&self->window, (size_t)at), number);
    return 0;
}

static PyObject *get_grown(WindowObject *self, void *unused)
{
    return is_open(self) ? PyLong_FromLongLong((int64_t)load(word_at(&self->window, GROWN))) : NULL;
}

static int set_grown(WindowObject *self, PyObject *value, void *unused)
{
    long long grown = value ? PyLong_AsLongLong(value) : 0;
    if (PyErr_Occurred() || !is_open(self))
        return -1;
    store(word_at(&self->window, GROWN), (uint64_t)grown);
    return 0;
}

static PyObject *get_number(WindowObject *self, void *unused)
{
    return is_open(self) ? PyLong_FromUnsignedLongLong(self->window.number) : NULL;
}

static PyMethodDef window_methods[] = {
    {"get", (PyCFunction)(void (*)(void))window_get_method, METH_FASTCALL, NULL},
    {"append", (PyCFunction)(void (*)(void))window_append_method, METH_FASTCALL, NULL},
    {"changed", (PyCFunction)(void (*)(void))window_changed, METH_FASTCALL, NULL},
    {"records", (PyCFunction)(void (*)(void))window_records, METH_FASTCALL, NULL},
    {"repair", (PyCFunction)window_repair_method, METH_NOARGS, NULL},
    {"is_whole", (PyCFunction)window_is_whole_method, METH_NOARGS, NULL},
    {"close", (PyCFunction)window_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef window_words[] = {
    {"tip", (getter)get_word, NULL, NULL, (void *)TIP},
    {"next", (getter)get_word, (setter)set_word, NULL, (void *)NEXT},
    {"home", (getter)get_word, (setter)set_word, NULL, (void *)HOME},
    {"synced", (getter)get_word, (setter)set_word, NULL, (void *)SYNCED},
    {"grown", (getter)get_grown, (setter)set_grown, NULL, NULL},
    {"number", (getter)get_number, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot window_slots[] = {
    {Py_tp_new, window_new},
    {Py_tp_dealloc, window_dealloc},
    {Py_tp_methods, window_methods},
    {Py_tp_getset, window_words},
    {0, NULL},
};

static PyType_Spec window_spec = {
    .name = "rlite_pubsub.storage.window._window.Window",
    .basicsize = sizeof(WindowObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = window_slots,
};

/* -- the keys in order */

typedef struct {
    PyObject_HEAD
    View view;
    WindowObject *window;
} ViewObject;

static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    WindowObject *window;
    int database = -1;
    static char *names[] = {"window", "database", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|i", names, window_type, &window, &database) || !is_open(window))
        return NULL;
    if (database < -1 || database > 255) {
        PyErr_SetString(PyExc_ValueError, "a database is a byte, or -1 for all of them");
        return NULL;
    }
    ViewObject *self = (ViewObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->window = (WindowObject *)Py_NewRef(window);
    window->users++;
    self->view.window = &window->window;
    self->view.database = database;
    self->view.seen = LOG_HEAD_BYTES;
    return (PyObject *)self;
}

static void view_leave(ViewObject *self)
{
    free(self->view.old.places);
    free(self->view.young.places);
    memset(&self->view, 0, sizeof self->view);
    if (self->window) {
        self->window->users--;
        Py_CLEAR(self->window);
    }
}

static void view_dealloc(ViewObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    view_leave(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyObject *view_close(ViewObject *self, PyObject *unused)
{
    view_leave(self);
    Py_RETURN_NONE;
}

/* A snapshot that the view has looked at, and a key; the key may be None where that is allowed. */
static int asked(ViewObject *self, PyObject *const *args, Py_ssize_t count, int may_be_none, uint64_t *end,
                 const uint8_t **key, size_t *size)
{
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "a snapshot and a key are needed, not %zd arguments", count);
        return 0;
    }
    if (!self->window) {
        PyErr_SetString(PyExc_ValueError, "the view is closed");
        return 0;
    }
    *key = NULL, *size = 0;
    if (!(may_be_none && args[1] == Py_None)) {
        if (!is_key(args[1]))
            return 0;
        *key = (const uint8_t *)PyBytes_AS_STRING(args[1]), *size = PyBytes_GET_SIZE(args[1]);
    }
    if (!end_of_snapshot(self->window, args[0], end))
        return 0;
    if (*end > self->view.seen) {
        int status = view_look(&self->view, *end);
        if (status) {
            failed(status);
            return 0;
        }
    }
    return 1;
}

static PyObject *key_found(ViewObject *self, uint64_t row)
{
    if (!row)
        Py_RETURN_NONE;
    return key_of_row(self->view.window, row);
}

#define WALK(name, find, flag, may_be_none)                                                        \
    static PyObject *name(ViewObject *self, PyObject *const *args, Py_ssize_t count)               \
    {                                                                                              \
        uint64_t end;                                                                              \
        const uint8_t *key;                                                                        \
        size_t size;                                                                               \
        if (!asked(self, args, count, may_be_none, &end, &key, &size))                             \
            return NULL;                                                                           \
        return key_found(self, find(&self->view, end, key, size, flag));                           \
    }
WALK(view_at_or_after, view_next, 0, 0)
WALK(view_after, view_next, 1, 0)
WALK(view_before, view_previous, 0, 1)
WALK(view_at_or_before, view_previous, 1, 0)

/* A slice of all rows as they are at a snapshot of a window that nobody writes any more. */
static PyObject *view_slice(ViewObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t end;
    if (count != 3 || !self->window) {
        PyErr_SetString(PyExc_TypeError, "slice() of an open view takes a snapshot, a place and a number of bytes");
        return NULL;
    }
    size_t at = PyLong_AsSize_t(args[1]), most = PyLong_AsSize_t(args[2]), size = 0;
    if (PyErr_Occurred() || !end_of_snapshot(self->window, args[0], &end))
        return NULL;
    int status = end > self->view.seen ? view_look(&self->view, end) : 0;
    if (!status && self->view.young.count)
        status = join_young(&self->view);
    if (status)
        return failed(status);
    const Window *window = self->view.window;
    PyObject *rows = PyList_New(0);
    for (; rows && at < self->view.old.count && size < most; at++) {
        uint64_t row = self->view.old.places[at].row;
        if (row >= end)
            continue;
        row = window_get(window, end, row_key(window, row), row_key_bytes(window, row));
        size += bytes_of_row(row_key_bytes(window, row), row_value_bytes(window, row));
        PyObject *pair = pair_of_row(window, row);
        if (!pair || PyList_Append(rows, pair))
            Py_CLEAR(rows);
        Py_XDECREF(pair);
    }
    return rows ? Py_BuildValue("Nn", rows, at < self->view.old.count ? (Py_ssize_t)at : -1) : NULL;
}

static PyMethodDef view_methods[] = {
    {"at_or_after", (PyCFunction)(void (*)(void))view_at_or_after, METH_FASTCALL, NULL},
    {"after", (PyCFunction)(void (*)(void))view_after, METH_FASTCALL, NULL},
    {"before", (PyCFunction)(void (*)(void))view_before, METH_FASTCALL, NULL},
    {"at_or_before", (PyCFunction)(void (*)(void))view_at_or_before, METH_FASTCALL, NULL},
    {"slice", (PyCFunction)(void (*)(void))view_slice, METH_FASTCALL, NULL},
    {"close", (PyCFunction)view_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot view_slots[] = {
    {Py_tp_new, view_new},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_methods, view_methods},
    {0, NULL},
};

static PyType_Spec view_spec = {
    .name = "rlite_pubsub.storage.window._window.View",
    .basicsize = sizeof(ViewObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = view_slots,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_window", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__window(void)
{
    make_crc_table();
    PyObject *made = PyModule_Create(&module);
    if (!made)
        return NULL;
    window_type = (PyTypeObject *)PyType_FromSpec(&window_spec);
    view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
    if (!window_type || !view_type || PyModule_AddObjectRef(made, "Window", (PyObject *)window_type) ||
        PyModule_AddObjectRef(made, "View", (PyObject *)view_type)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
