/* Requests that are written as clients write them, cut out of what has arrived. batch.py says what is promised. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define MOST ((Py_ssize_t)1 << 40)
#define LEAST_ARGUMENT_BYTES 6 /* $0\r\n\r\n */

/* The word of the last request: the next one is often the same, and then it is the same object, whose hash is known. */
static PyObject *last_word;

static PyObject *word(const char *bytes, Py_ssize_t size)
{
    if (last_word != NULL && PyBytes_GET_SIZE(last_word) == size && memcmp(PyBytes_AS_STRING(last_word), bytes, size) == 0)
        return Py_NewRef(last_word);
    PyObject *made = PyBytes_FromStringAndSize(bytes, size);
    if (made != NULL && size < 64)
        Py_XSETREF(last_word, Py_NewRef(made));
    return made;
}

/* The number in the header that begins at `*at`, which is moved behind it; -1: it is not plainly one. */
static Py_ssize_t header(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t *at)
{
    Py_ssize_t place = *at + 1, number = 0;
    if (place + 1 >= size || bytes[place] < '0' || bytes[place] > '9' || (bytes[place] == '0' && bytes[place + 1] != '\r'))
        return -1;
    for (; place < size && bytes[place] >= '0' && bytes[place] <= '9'; place++) {
        number = number * 10 + (bytes[place] - '0');
        if (number >= MOST)
            return -1;
    }
    if (place + 1 >= size || bytes[place] != '\r')
        return -1;
    *at = place + 2;
    return number;
}

static PyObject *request(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t *at, Py_ssize_t count)
{
    PyObject *made = PyList_New(count);
    for (Py_ssize_t each = 0; made != NULL && each < count; each++) {
        Py_ssize_t length = *at < size && bytes[*at] == '$' ? header(bytes, size, at) : -1;
        const char *text = (const char *)bytes + *at;
        PyObject *argument = NULL;
        if (length >= 0 && length + 2 <= size - *at)
            argument = each == 0 ? word(text, length) : PyBytes_FromStringAndSize(text, length);
        if (argument == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        PyList_SET_ITEM(made, each, argument);
        *at += length + 2;
    }
    return made;
}

static PyObject *cut(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    /* (what has arrived, a list to which requests are added, at most so many of them) -> where the last of them ends */
    if (count != 3 || !PyBytes_Check(args[0]) || !PyList_Check(args[1]) || !PyLong_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "cut() takes bytes, a list and an int");
        return NULL;
    }
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]), most = PyLong_AsSsize_t(args[2]), end = 0;
    if (most == -1 && PyErr_Occurred())
        return NULL;
    for (; most > 0 && end < size && bytes[end] == '*'; most--) {
        Py_ssize_t at = end, words = header(bytes, size, &at);
        if (words < 1 || words > (size - at) / LEAST_ARGUMENT_BYTES)
            break;
        PyObject *made = request(bytes, size, &at, words);
        if (made == NULL) {
            if (PyErr_Occurred())
                return NULL;
            break;
        }
        int failed = PyList_Append(args[1], made) < 0;
        Py_DECREF(made);
        if (failed)
            return NULL;
        end = at;
    }
    return PyLong_FromSsize_t(end);
}

static PyObject *cut_arguments(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    /* (what has arrived, where in it an argument begins, a list to which arguments are added, at most so many of them,
       the longest one) -> where the last of them ends */
    if (count != 5 || !PyBytes_Check(args[0]) || !PyLong_Check(args[1]) || !PyList_Check(args[2]) || !PyLong_Check(args[3]) ||
        !PyLong_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "cut_arguments() takes bytes, an int, a list and two ints");
        return NULL;
    }
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]), end = PyLong_AsSsize_t(args[1]);
    Py_ssize_t most = PyLong_AsSsize_t(args[3]), longest = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (end < 0 || end > size) {
        PyErr_SetString(PyExc_ValueError, "cut_arguments() begins within the bytes");
        return NULL;
    }
    for (; most > 0 && end < size && bytes[end] == '$'; most--) {
        Py_ssize_t at = end, length = header(bytes, size, &at);
        if (length < 0 || length > longest || length + 2 > size - at)
            break;
        PyObject *made = PyBytes_FromStringAndSize((const char *)bytes + at, length);
        int failed = made == NULL || PyList_Append(args[2], made) < 0;
        Py_XDECREF(made);
        if (failed)
            return NULL;
        end = at + length + 2;
    }
    return PyLong_FromSsize_t(end);
}

static PyMethodDef methods[] = {
    {"cut_arguments", (PyCFunction)(void (*)(void))cut_arguments, METH_FASTCALL, NULL},
    {"cut", (PyCFunction)(void (*)(void))cut, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_cut", "Requests, cut out of what has arrived.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__cut(void) { return PyModule_Create(&module); }
