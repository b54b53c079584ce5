/* An array of bulk strings, as requests, entries and most long replies are one. encoder.py says what it promises, and
   does the same without a compiler. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

static int digits_of(size_t number)
{
    int count = 1;
    while (number >= 10) {
        number /= 10;
        count++;
    }
    return count;
}

static char *put_head(char *at, char first, size_t number)
{
    /* A line: what follows, and how much of it there is. */
    int count = digits_of(number);
    *at = first;
    for (int place = count; place > 0; place--, number /= 10)
        at[place] = (char)('0' + number % 10);
    at += count + 1;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static PyObject *bulk_array(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    /* (a list or tuple, what stands before its elements: None is an array's header) -> None if they aren't all bytes */
    if (count != 2 || !(PyList_Check(args[0]) || PyTuple_Check(args[0])) ||
        !(args[1] == Py_None || PyBytes_Check(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "bulk_array() takes a list or tuple, and bytes or None");
        return NULL;
    }
    Py_ssize_t length = PySequence_Fast_GET_SIZE(args[0]);
    PyObject **texts = PySequence_Fast_ITEMS(args[0]), *header = args[1] == Py_None ? NULL : args[1];
    size_t size = header != NULL ? (size_t)PyBytes_GET_SIZE(header) : 3 + (size_t)digits_of(length);
    for (Py_ssize_t place = 0; place < length; place++) {
        if (!PyBytes_CheckExact(texts[place]))
            Py_RETURN_NONE;
        size_t text = PyBytes_GET_SIZE(texts[place]);
        size += 5 + digits_of(text) + text;
    }
    if (size > PY_SSIZE_T_MAX - 64)
        return PyErr_NoMemory();
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    if (made == NULL)
        return NULL;
    char *at = PyBytes_AS_STRING(made);
    if (header != NULL) {
        memcpy(at, PyBytes_AS_STRING(header), PyBytes_GET_SIZE(header));
        at += PyBytes_GET_SIZE(header);
    } else
        at = put_head(at, '*', length);
    for (Py_ssize_t place = 0; place < length; place++) {
        size_t text = PyBytes_GET_SIZE(texts[place]);
        at = put_head(at, '$', text);
        memcpy(at, PyBytes_AS_STRING(texts[place]), text);
        at += text;
        *at++ = '\r';
        *at++ = '\n';
    }
    return made;
}

static PyMethodDef methods[] = {
    {"bulk_array", (PyCFunction)(void (*)(void))bulk_array, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_bulk_array", "Arrays of bulk strings.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__bulk_array(void) { return PyModule_Create(&module); }
