/* Waiting for sockets and reading what has come, in one call; and writing to one.

   Each call of os.read and os.write gives Python's lock away and takes it back, which costs as much as all else that it
   does in Python. Here the lock is given away while we wait, and for what is large. wires.py says what each thing
   promises, and does without a compiler with the select and os modules. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_BYTES (16 * 1024)          /* of one socket in one look; wires.py has the same */
#define ALL_READ_BYTES (1024 * 1024)    /* in one look: what else has come is read where it is executed */
#define MOST_EVENTS 1024
#define MOST_DESCRIPTORS (1 << 28)      /* beyond any limit that Linux knows */
#define READ (-1)                       /* what has been read counts as one descriptor that is ready */
#define LONG_WRITE_BYTES (64 * 1024)    /* worth giving the lock away for */

typedef struct {
    PyObject_HEAD
    int epoll;
    int readers_room;
    PyObject **readers; /* by descriptor: what is called with what has been read, or NULL */
    PyObject *read;     /* by the last look: (reader, what was read) */
    int is_polling;
    struct epoll_event events[MOST_EVENTS]; /* while it looks; not on the stack of a thread, which may be small */
    char buffer[READ_BYTES];
} Poller;

static PyObject *poller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Poller *self = (Poller *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->epoll = -1;
    self->read = PyList_New(0);
    if (self->read == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self->epoll < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int poller_traverse(Poller *self, visitproc visit, void *arg)
{
    for (int fd = 0; fd < self->readers_room; fd++)
        Py_VISIT(self->readers[fd]);
    Py_VISIT(self->read);
    return 0;
}

static int poller_clear(Poller *self)
{
    PyObject **readers = self->readers;
    int room = self->readers_room;
    self->readers = NULL;
    self->readers_room = 0;
    for (int fd = 0; fd < room; fd++)
        Py_XDECREF(readers[fd]);
    free(readers);
    Py_CLEAR(self->read);
    return 0;
}

static void poller_dealloc(Poller *self)
{
    PyObject_GC_UnTrack(self);
    poller_clear(self);
    if (self->epoll >= 0)
        close(self->epoll);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *poller_control(Poller *self, int operation, PyObject *args)
{
    int fd;
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    if (!PyArg_ParseTuple(args, operation == EPOLL_CTL_DEL ? "i" : "iI", &fd, &event.events))
        return NULL;
    event.data.fd = fd;
    if (epoll_ctl(self->epoll, operation, fd, &event) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyObject *poller_register(Poller *self, PyObject *args)
{
    return poller_control(self, EPOLL_CTL_ADD, args);
}

static PyObject *poller_modify(Poller *self, PyObject *args)
{
    return poller_control(self, EPOLL_CTL_MOD, args);
}

static PyObject *poller_unregister(Poller *self, PyObject *args)
{
    return poller_control(self, EPOLL_CTL_DEL, args);
}

static PyObject *poller_read_along(Poller *self, PyObject *args)
{
    int fd;
    PyObject *reader, *before;
    if (!PyArg_ParseTuple(args, "iO", &fd, &reader))
        return NULL;
    if (fd < 0 || fd > MOST_DESCRIPTORS) {
        PyErr_Format(PyExc_ValueError, "%d is no file descriptor", fd);
        return NULL;
    }
    if (self->read == NULL) { /* it would be kept for nobody */
        PyErr_SetString(PyExc_ValueError, "read_along() of a closed poller");
        return NULL;
    }
    if (reader == Py_None)
        reader = NULL;
    if (fd >= self->readers_room) {
        if (reader == NULL)
            Py_RETURN_NONE;
        int room = fd + 64;
        PyObject **readers = realloc(self->readers, room * sizeof *readers);
        if (readers == NULL)
            return PyErr_NoMemory();
        memset(readers + self->readers_room, 0, (room - self->readers_room) * sizeof *readers);
        self->readers = readers;
        self->readers_room = room;
    }
    before = self->readers[fd];
    Py_XINCREF(reader);
    self->readers[fd] = reader;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static int add_pair(PyObject *list, PyObject *first, PyObject *second)
{
    /* Takes `second` over. */
    PyObject *pair = second != NULL ? PyTuple_New(2) : NULL;
    if (pair == NULL) {
        Py_XDECREF(second);
        return -1;
    }
    Py_INCREF(first);
    PyTuple_SET_ITEM(pair, 0, first);
    PyTuple_SET_ITEM(pair, 1, second);
    int failed = PyList_Append(list, pair);
    Py_DECREF(pair);
    return failed;
}

static int add_ready(PyObject *list, long fd, unsigned long events)
{
    PyObject *number = PyLong_FromLong(fd);
    int failed = number == NULL || add_pair(list, number, PyLong_FromUnsignedLong(events)) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

static PyObject *poller_ready(Poller *self, int timeout_ms, int most)
{
    struct epoll_event *events = self->events;
    int count, has_read = 0;
    Py_ssize_t all_read = 0;
    if (timeout_ms == 0)
        count = epoll_wait(self->epoll, events, most, 0);
    else {
        Py_BEGIN_ALLOW_THREADS
        count = epoll_wait(self->epoll, events, most, timeout_ms);
        Py_END_ALLOW_THREADS
    }
    if (count < 0) {
        if (errno != EINTR)
            return PyErr_SetFromErrno(PyExc_OSError);
        if (PyErr_CheckSignals() < 0)
            return NULL;
        count = 0;
    }
    PyObject *ready = PyList_New(0);
    if (ready == NULL)
        return NULL;
    for (int at = 0; at < count; at++) {
        int fd = events[at].data.fd;
        PyObject *reader = fd < self->readers_room ? self->readers[fd] : NULL;
        if (reader != NULL && events[at].events == EPOLLIN && all_read < ALL_READ_BYTES) {
            ssize_t size = read(fd, self->buffer, READ_BYTES);
            if (size < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            /* A failure is reported once: a later read must not take it for an orderly end. To make a tuple may collect
               garbage, whose end may take what was read, or close this poller. */
            PyObject *data = size < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(self->buffer, size);
            PyObject *list = Py_NewRef(self->read);
            Py_INCREF(reader);
            int failed = add_pair(list, reader, data);
            Py_DECREF(reader);
            Py_DECREF(list);
            if (failed < 0)
                goto failed;
            all_read += size;
            if (!has_read && add_ready(ready, READ, EPOLLIN) < 0)
                goto failed;
            has_read = 1;
        }
        else if (add_ready(ready, fd, events[at].events) < 0)
            goto failed;
    }
    return ready;
failed:
    Py_DECREF(ready);
    return NULL;
}

static PyObject *poller_poll(Poller *self, PyObject *const *args, Py_ssize_t nargs)
{
    int timeout_ms = -1, most = MOST_EVENTS;
    if (nargs < 1 || nargs > 2) {
        PyErr_Format(PyExc_TypeError, "poll() takes 1 or 2 arguments (%zd given)", nargs);
        return NULL;
    }
    if (args[0] != Py_None) {
        double seconds = PyFloat_AsDouble(args[0]);
        if (seconds == -1.0 && PyErr_Occurred())
            return NULL;
        if (isnan(seconds)) {
            PyErr_SetString(PyExc_ValueError, "poll() takes a timeout in seconds, not nan");
            return NULL;
        }
        double ms = ceil(seconds * 1e3);
        timeout_ms = ms <= 0 ? 0 : ms >= 2e9 ? 2000000000 : (int)ms;
    }
    if (nargs == 2) {
        long wanted = PyLong_AsLong(args[1]);
        if (wanted == -1 && PyErr_Occurred())
            return NULL;
        if (wanted < 1) {
            PyErr_SetString(PyExc_ValueError, "poll() takes a number of events above zero");
            return NULL;
        }
        most = wanted < MOST_EVENTS ? (int)wanted : MOST_EVENTS;
    }
    if (self->read == NULL) {
        errno = EBADF;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (self->is_polling) { /* both would write to the same events */
        PyErr_SetString(PyExc_RuntimeError, "poll() of a poller that another thread polls");
        return NULL;
    }
    self->is_polling = 1;
    PyObject *ready = poller_ready(self, timeout_ms, most);
    self->is_polling = 0;
    return ready;
}

static PyObject *poller_take(Poller *self, PyObject *nothing)
{
    PyObject *empty = PyList_New(0), *read = self->read;
    if (empty == NULL || read == NULL) /* it is closed, and stays so */
        return empty;
    self->read = empty;
    return read;
}

static PyObject *poller_fileno(Poller *self, PyObject *nothing)
{
    return PyLong_FromLong(self->epoll);
}

static PyObject *poller_close(Poller *self, PyObject *nothing)
{
    if (self->epoll >= 0)
        close(self->epoll);
    self->epoll = -1;
    poller_clear(self);
    Py_RETURN_NONE;
}

static PyMethodDef poller_methods[] = {
    {"register", (PyCFunction)poller_register, METH_VARARGS, NULL},
    {"modify", (PyCFunction)poller_modify, METH_VARARGS, NULL},
    {"unregister", (PyCFunction)poller_unregister, METH_VARARGS, NULL},
    {"read_along", (PyCFunction)poller_read_along, METH_VARARGS, NULL},
    {"poll", (PyCFunction)(void (*)(void))poller_poll, METH_FASTCALL, NULL},
    {"take", (PyCFunction)poller_take, METH_NOARGS, NULL},
    {"fileno", (PyCFunction)poller_fileno, METH_NOARGS, NULL},
    {"close", (PyCFunction)poller_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject PollerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rlite_pubsub.server._wires.Poller",
    .tp_basicsize = sizeof(Poller),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = poller_new,
    .tp_dealloc = (destructor)poller_dealloc,
    .tp_traverse = (traverseproc)poller_traverse,
    .tp_clear = (inquiry)poller_clear,
    .tp_methods = poller_methods,
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int fd;
} Sender;

static PyObject *sender_call(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names)
{
    int fd = ((Sender *)callable)->fd;
    Py_buffer data;
    ssize_t sent;
    if (PyVectorcall_NARGS(nargs) != 1 || names != NULL) {
        PyErr_Format(PyExc_TypeError, "send() takes 1 positional argument (%zd given)",
                     PyVectorcall_NARGS(nargs) + (names != NULL ? PyTuple_GET_SIZE(names) : 0));
        return NULL;
    }
    if (PyBytes_CheckExact(args[0]) && PyBytes_GET_SIZE(args[0]) < LONG_WRITE_BYTES)
        sent = write(fd, PyBytes_AS_STRING(args[0]), PyBytes_GET_SIZE(args[0]));
    else {
        if (!PyObject_CheckBuffer(args[0])) {
            PyErr_Format(PyExc_TypeError, "send() takes a bytes-like object, not '%.100s'", Py_TYPE(args[0])->tp_name);
            return NULL;
        }
        if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
            return NULL;
        Py_BEGIN_ALLOW_THREADS
        sent = write(fd, data.buf, data.len);
        Py_END_ALLOW_THREADS
        int failure = errno;
        PyBuffer_Release(&data);
        errno = failure;
    }
    if (sent < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromSsize_t(sent);
}

static PyObject *sender_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int fd;
    if (!PyArg_ParseTuple(args, "i", &fd))
        return NULL;
    Sender *self = (Sender *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->call = sender_call;
        self->fd = fd;
    }
    return (PyObject *)self;
}

static PyTypeObject SenderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rlite_pubsub.server._wires.Sender",
    .tp_basicsize = sizeof(Sender),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = sender_new,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Sender, call),
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_wires", "Sockets, with fewer calls.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__wires(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddType(made, &PollerType) < 0 || PyModule_AddType(made, &SenderType) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
