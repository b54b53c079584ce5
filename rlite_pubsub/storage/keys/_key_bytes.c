/* Keys of records: digests, places in an order of scores, and how keys sort; and the bytes of the records that most
   commands write. key_bytes.py says what each promises, and does the same without a compiler.

   Python's own ways are for anything that hashes and compares, and cost as much as the rest of a command: ten times what
   is needed for bytes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_BYTES 16
#define SCORE_BYTES 8
#define LONG_BYTES 440
#define FIELD_HEAD_BYTES 12
#define KEY_HEAD_BYTES 22
#define ELEMENT_KEY_BYTES 17
#define WORD_HEAD_BYTES 4
#define COUNT_BYTES 8
#define CHANGE_HEAD_BYTES 6
#define REMOVED 0xffffffffu
#define ROW_BYTES 50

/* -- BLAKE2b (RFC 7693) of 16 bytes, without a key */

#define BLOCK_BYTES 128

static const uint64_t start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t permutations[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t turned(uint64_t word, int bits) { return word >> bits | word << (64 - bits); }

static inline uint64_t from_little_endian(const uint8_t *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24 |
           (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 | (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

#define MIX(a, b, c, d, x, y)            \
    do {                                 \
        a += b + (x);                    \
        d = turned(d ^ a, 32);           \
        c += d;                          \
        b = turned(b ^ c, 24);           \
        a += b + (y);                    \
        d = turned(d ^ a, 16);           \
        c += d;                          \
        b = turned(b ^ c, 63);           \
    } while (0)

/* A constant number of a round makes all places constants. */
#define WORD(round, at) words[permutations[round][at]]
#define ROUND(round)                                                       \
    MIX(v0, v4, v8, v12, WORD(round, 0), WORD(round, 1));                  \
    MIX(v1, v5, v9, v13, WORD(round, 2), WORD(round, 3));                  \
    MIX(v2, v6, v10, v14, WORD(round, 4), WORD(round, 5));                 \
    MIX(v3, v7, v11, v15, WORD(round, 6), WORD(round, 7));                 \
    MIX(v0, v5, v10, v15, WORD(round, 8), WORD(round, 9));                 \
    MIX(v1, v6, v11, v12, WORD(round, 10), WORD(round, 11));               \
    MIX(v2, v7, v8, v13, WORD(round, 12), WORD(round, 13));                \
    MIX(v3, v4, v9, v14, WORD(round, 14), WORD(round, 15))

static void compress(uint64_t *state, const uint8_t *block, uint64_t passed, int is_last)
{
    uint64_t words[16];
    for (int at = 0; at < 16; at++)
        words[at] = from_little_endian(block + 8 * at);
    uint64_t v0 = state[0], v1 = state[1], v2 = state[2], v3 = state[3];
    uint64_t v4 = state[4], v5 = state[5], v6 = state[6], v7 = state[7];
    uint64_t v8 = start[0], v9 = start[1], v10 = start[2], v11 = start[3];
    uint64_t v12 = start[4] ^ passed, v13 = start[5], v14 = is_last ? ~start[6] : start[6], v15 = start[7];
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(8);
    ROUND(9);
    ROUND(10);
    ROUND(11);
    state[0] ^= v0 ^ v8;
    state[1] ^= v1 ^ v9;
    state[2] ^= v2 ^ v10;
    state[3] ^= v3 ^ v11;
    state[4] ^= v4 ^ v12;
    state[5] ^= v5 ^ v13;
    state[6] ^= v6 ^ v14;
    state[7] ^= v7 ^ v15;
}

static void digest_of(PyObject *name, uint8_t *made)
{
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(name);
    size_t size = PyBytes_GET_SIZE(name), done = 0;
    uint8_t last[BLOCK_BYTES] = {0};
    uint64_t state[8];
    memcpy(state, start, sizeof state);
    state[0] ^= 0x01010000 | DIGEST_BYTES;
    for (; size - done > BLOCK_BYTES; done += BLOCK_BYTES)
        compress(state, bytes + done, done + BLOCK_BYTES, 0);
    memcpy(last, bytes + done, size - done);
    compress(state, last, size, 1);
    for (int at = 0; at < DIGEST_BYTES; at++)
        made[at] = state[at / 8] >> 8 * (at % 8) & 0xff;
}

static PyObject *digest(PyObject *unused, PyObject *name)
{
    if (!PyBytes_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "digest() takes bytes");
        return NULL;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, DIGEST_BYTES);
    if (made != NULL)
        digest_of(name, (uint8_t *)PyBytes_AS_STRING(made));
    return made;
}

static PyObject *member_rows(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    /* (what the keys begin with, a list of members) -> the members by their keys */
    if (count != 2 || !PyBytes_Check(args[0]) || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "member_rows() takes bytes and a list");
        return NULL;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]);
    PyObject *made = PyDict_New();
    for (Py_ssize_t at = 0; made != NULL && at < PyList_GET_SIZE(args[1]); at++) {
        PyObject *member = Py_NewRef(PyList_GET_ITEM(args[1], at)), *key = NULL;
        if (!PyBytes_Check(member))
            PyErr_SetString(PyExc_TypeError, "members are bytes");
        else
            key = PyBytes_FromStringAndSize(NULL, size + DIGEST_BYTES);
        if (key != NULL) {
            memcpy(PyBytes_AS_STRING(key), PyBytes_AS_STRING(args[0]), size);
            digest_of(member, (uint8_t *)PyBytes_AS_STRING(key) + size);
        }
        if (key == NULL || PyDict_SetItem(made, key, member) < 0)
            Py_CLEAR(made);
        Py_XDECREF(key);
        Py_DECREF(member);
    }
    return made;
}

/* -- the register of a HyperLogLog (Redis's): MurmurHash64A, its lowest bits and the zeros that follow them */

#define REGISTER_BITS 6
#define INDEX_BITS 14

static uint64_t murmur(const uint8_t *bytes, size_t size)
{
    const uint64_t mix = 0xc6a4a7935bd1e995;
    uint64_t hashed = 0xadc83b19 ^ size * mix;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word = from_little_endian(bytes) * mix;
        hashed = (hashed ^ (word ^ word >> 47) * mix) * mix;
    }
    if (size > 0) {
        uint64_t word = 0;
        for (size_t at = 0; at < size; at++)
            word |= (uint64_t)bytes[at] << 8 * at;
        hashed = (hashed ^ word) * mix;
    }
    hashed = (hashed ^ hashed >> 47) * mix;
    return hashed ^ hashed >> 47;
}

static PyObject *register_of(PyObject *unused, PyObject *element)
{
    if (!PyBytes_Check(element)) {
        PyErr_SetString(PyExc_TypeError, "register() takes bytes");
        return NULL;
    }
    uint64_t hashed = murmur((const uint8_t *)PyBytes_AS_STRING(element), PyBytes_GET_SIZE(element));
    uint64_t rest = hashed >> INDEX_BITS | (uint64_t)1 << (64 - INDEX_BITS);
    long zeros = 0;
    for (; !(rest & 1); rest >>= 1)
        zeros++;
    return PyLong_FromLong((long)(hashed & (((uint64_t)1 << INDEX_BITS) - 1)) << REGISTER_BITS | (zeros + 1));
}

/* -- places */

/* 8 bytes of a score, and the member. */
static PyObject *behind_score(uint64_t bits, PyObject *member)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, SCORE_BYTES + PyBytes_GET_SIZE(member));
    if (made == NULL)
        return NULL;
    char *bytes = PyBytes_AS_STRING(made);
    for (int at = SCORE_BYTES - 1; at >= 0; at--, bits >>= 8)
        bytes[at] = bits & 0xff;
    memcpy(bytes + SCORE_BYTES, PyBytes_AS_STRING(member), PyBytes_GET_SIZE(member));
    return made;
}

/* Whether these are a score and a member; else an exception is set. */
static int has_score(PyObject *const *args, Py_ssize_t count, double *score)
{
    if (count != 2 || !PyFloat_Check(args[0]) || !PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a score is a float, and a member is bytes");
        return 0;
    }
    *score = PyFloat_AS_DOUBLE(args[0]);
    return 1;
}

static PyObject *place(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    double score;
    uint64_t bits;
    if (!has_score(args, count, &score))
        return NULL;
    if (score == 0)
        score = 0.0; /* of the other zero, too */
    memcpy(&bits, &score, sizeof bits);
    return behind_score(bits >> 63 ? ~bits : bits | (uint64_t)1 << 63, args[1]);
}

static PyObject *scored(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    double score;
    uint64_t bits;
    if (!has_score(args, count, &score))
        return NULL;
    memcpy(&bits, &score, sizeof bits);
    return behind_score(bits, args[1]);
}

static PyObject *members_of(PyObject *unused, PyObject *places)
{
    if (!PyList_Check(places)) {
        PyErr_Format(PyExc_TypeError, "members_of() takes a list, not '%.100s'", Py_TYPE(places)->tp_name);
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(places);
    PyObject *made = PyList_New(count);
    if (made != NULL && PyList_GET_SIZE(places) != count) { /* to make a list may collect garbage */
        Py_DECREF(made);
        PyErr_SetString(PyExc_RuntimeError, "the list of places has changed meanwhile");
        return NULL;
    }
    for (Py_ssize_t at = 0; made != NULL && at < count; at++) {
        PyObject *place = PyList_GET_ITEM(places, at), *member = NULL;
        Py_ssize_t size = PyBytes_Check(place) ? PyBytes_GET_SIZE(place) : 0;
        if (size < SCORE_BYTES)
            PyErr_SetString(PyExc_TypeError, "a place has a score and a member");
        else {
            Py_ssize_t start = size <= SCORE_BYTES + LONG_BYTES ? SCORE_BYTES : SCORE_BYTES + LONG_BYTES + DIGEST_BYTES;
            if (start > size)
                start = size;
            member = PyBytes_FromStringAndSize(PyBytes_AS_STRING(place) + start, size - start);
        }
        if (member == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyList_SET_ITEM(made, at, member);
    }
    return made;
}

/* -- records */

static char *in_big_endian(char *bytes, uint64_t number, int size)
{
    for (int at = size - 1; at >= 0; at--, number >>= 8)
        bytes[at] = number & 0xff;
    return bytes + size;
}

/* Whether there is such a number, of at most this many bytes; else an exception is set. */
static int has_number(PyObject *object, int size, uint64_t *number)
{
    if (!PyLong_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a number is an int");
        return 0;
    }
    *number = PyLong_AsUnsignedLongLong(object);
    if (*number == (uint64_t)-1 && PyErr_Occurred())
        return 0;
    if (size < 8 && *number >> 8 * size) {
        PyErr_SetString(PyExc_OverflowError, "a number is too large for its record");
        return 0;
    }
    return 1;
}

static PyObject *field(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1]) || !PyLong_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "a field has a name, a value and a time");
        return NULL;
    }
    Py_ssize_t name_bytes = PyBytes_GET_SIZE(args[0]), value_bytes = PyBytes_GET_SIZE(args[1]);
    uint64_t due_ms = PyLong_AsUnsignedLongLong(args[2]);
    if (due_ms == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    if ((uint64_t)name_bytes > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the name of a field is too long");
        return NULL;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, FIELD_HEAD_BYTES + name_bytes + value_bytes);
    if (made == NULL)
        return NULL;
    char *bytes = in_big_endian(PyBytes_AS_STRING(made), due_ms, 8);
    bytes = in_big_endian(bytes, name_bytes, 4);
    memcpy(bytes, PyBytes_AS_STRING(args[0]), name_bytes);
    memcpy(bytes + name_bytes, PyBytes_AS_STRING(args[1]), value_bytes);
    return made;
}

static PyObject *element(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]) || PyBytes_GET_SIZE(args[0]) != 1 || !PyLong_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "the key of an element has a byte, a number and an index");
        return NULL;
    }
    uint64_t number;
    if (!has_number(args[1], 8, &number))
        return NULL;
    long long index = PyLong_AsLongLong(args[2]);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, ELEMENT_KEY_BYTES);
    if (made == NULL)
        return NULL;
    char *bytes = PyBytes_AS_STRING(made);
    *bytes = *PyBytes_AS_STRING(args[0]);
    bytes = in_big_endian(bytes + 1, number, 8);
    in_big_endian(bytes, (uint64_t)index ^ (uint64_t)1 << 63, 8);
    return made;
}

static PyObject *key_record(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    if (count != 6 || !PyBytes_Check(args[4]) || !PyBytes_Check(args[5])) {
        PyErr_SetString(PyExc_TypeError, "the record of a key has four numbers, a name and a body");
        return NULL;
    }
    uint64_t type, flags, expires_ms, modified;
    if (!has_number(args[0], 1, &type) || !has_number(args[1], 1, &flags) || !has_number(args[2], 8, &expires_ms) ||
        !has_number(args[3], 8, &modified))
        return NULL;
    Py_ssize_t name_bytes = PyBytes_GET_SIZE(args[4]), body_bytes = PyBytes_GET_SIZE(args[5]);
    if ((uint64_t)name_bytes > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the name of a key is too long");
        return NULL;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, KEY_HEAD_BYTES + name_bytes + body_bytes);
    if (made == NULL)
        return NULL;
    char *bytes = PyBytes_AS_STRING(made);
    bytes = in_big_endian(bytes, type, 1);
    bytes = in_big_endian(bytes, flags, 1);
    bytes = in_big_endian(bytes, expires_ms, 8);
    bytes = in_big_endian(bytes, modified, 8);
    bytes = in_big_endian(bytes, name_bytes, 4);
    memcpy(bytes, PyBytes_AS_STRING(args[4]), name_bytes);
    memcpy(bytes + name_bytes, PyBytes_AS_STRING(args[5]), body_bytes);
    return made;
}

static PyObject *words(PyObject *unused, PyObject *strings)
{
    if (!PyList_Check(strings) && !PyTuple_Check(strings)) {
        PyErr_SetString(PyExc_TypeError, "words are a list or a tuple");
        return NULL;
    }
    PyObject **each = PySequence_Fast_ITEMS(strings);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(strings);
    int are_short = (uint64_t)count <= UINT32_MAX;
    size_t size = WORD_HEAD_BYTES;
    for (Py_ssize_t at = 0; at < count; at++) {
        if (!PyBytes_Check(each[at])) {
            PyErr_SetString(PyExc_TypeError, "all words are bytes");
            return NULL;
        }
        are_short &= (uint64_t)PyBytes_GET_SIZE(each[at]) <= UINT32_MAX;
        size += WORD_HEAD_BYTES + PyBytes_GET_SIZE(each[at]);
    }
    if (!are_short) {
        PyErr_SetString(PyExc_OverflowError, "a word is too long");
        return NULL;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    if (made == NULL)
        return NULL;
    char *head = in_big_endian(PyBytes_AS_STRING(made), count, WORD_HEAD_BYTES);
    char *bytes = head + WORD_HEAD_BYTES * count;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_ssize_t word_bytes = PyBytes_GET_SIZE(each[at]);
        head = in_big_endian(head, word_bytes, WORD_HEAD_BYTES);
        memcpy(bytes, PyBytes_AS_STRING(each[at]), word_bytes);
        bytes += word_bytes;
    }
    return made;
}

/* The words of a node above level 0. */
static PyObject *posts(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1]) ||
        PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]) || (uint64_t)PyList_GET_SIZE(args[0]) > UINT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "posts have a list of counts, and as many bounds");
        return NULL;
    }
    Py_ssize_t each = PyList_GET_SIZE(args[0]), size = WORD_HEAD_BYTES;
    for (Py_ssize_t at = 0; at < each; at++) {
        PyObject *bound = PyList_GET_ITEM(args[1], at);
        if (!PyBytes_Check(bound) || (uint64_t)PyBytes_GET_SIZE(bound) > UINT32_MAX - COUNT_BYTES) {
            PyErr_SetString(PyExc_TypeError, "a bound is bytes");
            return NULL;
        }
        size += WORD_HEAD_BYTES + COUNT_BYTES + PyBytes_GET_SIZE(bound);
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    if (made == NULL)
        return NULL;
    char *head = in_big_endian(PyBytes_AS_STRING(made), each, WORD_HEAD_BYTES);
    char *bytes = head + WORD_HEAD_BYTES * each;
    for (Py_ssize_t at = 0; at < each; at++) {
        PyObject *bound = PyList_GET_ITEM(args[1], at);
        uint64_t members;
        if (!has_number(PyList_GET_ITEM(args[0], at), COUNT_BYTES, &members)) {
            Py_DECREF(made);
            return NULL;
        }
        head = in_big_endian(head, COUNT_BYTES + PyBytes_GET_SIZE(bound), WORD_HEAD_BYTES);
        bytes = in_big_endian(bytes, members, COUNT_BYTES);
        memcpy(bytes, PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound));
        bytes += PyBytes_GET_SIZE(bound);
    }
    return made;
}

/* -- order */

static int compared(PyObject *left, PyObject *right)
{
    Py_ssize_t left_size = PyBytes_GET_SIZE(left), right_size = PyBytes_GET_SIZE(right);
    int found = memcmp(PyBytes_AS_STRING(left), PyBytes_AS_STRING(right), left_size < right_size ? left_size : right_size);
    return found != 0 ? found : (left_size > right_size) - (left_size < right_size);
}

/* -1: an exception is set. */
static Py_ssize_t place_in(PyObject *const *args, Py_ssize_t count, int is_right)
{
    if (count != 2 || !PyList_Check(args[0]) || !PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a list and bytes are needed");
        return -1;
    }
    Py_ssize_t low = 0, high = PyList_GET_SIZE(args[0]);
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        PyObject *each = PyList_GET_ITEM(args[0], middle);
        if (!PyBytes_Check(each)) {
            PyErr_SetString(PyExc_TypeError, "each element of the list is bytes");
            return -1;
        }
        if (compared(each, args[1]) < is_right)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static PyObject *left_of(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t found = place_in(args, count, 0);
    return found < 0 ? NULL : PyLong_FromSsize_t(found);
}

static PyObject *right_of(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t found = place_in(args, count, 1);
    return found < 0 ? NULL : PyLong_FromSsize_t(found);
}

static PyObject *put_in(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t found = place_in(args, count, 0);
    if (found < 0 || PyList_Insert(args[0], found, args[1]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *take_out(PyObject *unused, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t found = place_in(args, count, 0);
    if (found < 0)
        return NULL;
    if (found == PyList_GET_SIZE(args[0]) || compared(PyList_GET_ITEM(args[0], found), args[1]) != 0)
        Py_RETURN_FALSE;
    if (PyList_SetSlice(args[0], found, found + 1, NULL) < 0)
        return NULL;
    Py_RETURN_TRUE;
}

static int by_bytes(const void *left, const void *right)
{
    return compared(*(PyObject *const *)left, *(PyObject *const *)right);
}

static int by_keys(const void *left, const void *right)
{
    return compared(PyTuple_GET_ITEM(*(PyObject *const *)left, 0), PyTuple_GET_ITEM(*(PyObject *const *)right, 0));
}

static PyObject *rows_in_order(PyObject *unused, PyObject *rows)
{
    if (!PyDict_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "rows are a dictionary");
        return NULL;
    }
    PyObject *kept = PyList_New(0), *gone = PyList_New(0), *key, *value;
    Py_ssize_t at = 0, size = PyDict_GET_SIZE(rows);
    int failed = kept == NULL || gone == NULL;
    while (!failed && PyDict_Next(rows, &at, &key, &value)) {
        Py_INCREF(key); /* to make a row may collect garbage, whose end may change the rows */
        Py_INCREF(value);
        if (!PyBytes_Check(key) || (value != Py_None && !PyBytes_Check(value))) {
            PyErr_SetString(PyExc_TypeError, "keys and values of rows are bytes");
            failed = 1;
        } else if (value == Py_None)
            failed = PyList_Append(gone, key) < 0;
        else {
            PyObject *row = PyTuple_Pack(2, key, value);
            if (row != NULL)
                PyObject_GC_UnTrack(row); /* bytes are no garbage, and there may be a million of these */
            failed = row == NULL || PyList_Append(kept, row) < 0;
            Py_XDECREF(row);
        }
        Py_DECREF(key);
        Py_DECREF(value);
        if (!failed && PyDict_GET_SIZE(rows) != size) {
            PyErr_SetString(PyExc_RuntimeError, "the rows have changed meanwhile");
            failed = 1;
        }
    }
    PyObject *made = NULL;
    if (!failed) {
        if (PyList_GET_SIZE(kept) > 1)
            qsort(((PyListObject *)kept)->ob_item, PyList_GET_SIZE(kept), sizeof(PyObject *), by_keys);
        if (PyList_GET_SIZE(gone) > 1)
            qsort(((PyListObject *)gone)->ob_item, PyList_GET_SIZE(gone), sizeof(PyObject *), by_bytes);
        made = PyTuple_Pack(2, kept, gone);
    }
    Py_XDECREF(kept);
    Py_XDECREF(gone);
    return made;
}

static PyObject *bytes_of_rows(PyObject *unused, PyObject *rows)
{
    if (!PyDict_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "rows are a dictionary");
        return NULL;
    }
    Py_ssize_t at = 0, size = PyDict_GET_SIZE(rows) * ROW_BYTES;
    PyObject *key, *value;
    while (PyDict_Next(rows, &at, &key, &value))
        if (PyBytes_Check(value))
            size += PyBytes_GET_SIZE(value);
    return PyLong_FromSsize_t(size);
}

/* Whether these are of a row: a key of 16 bits' length, and a value or None. */
static int are_of_row(PyObject *key, PyObject *value)
{
    return PyBytes_Check(key) && PyBytes_GET_SIZE(key) <= 0xffff &&
           (value == Py_None || (PyBytes_Check(value) && (uint64_t)PyBytes_GET_SIZE(value) < REMOVED));
}

static PyObject *changes(PyObject *unused, PyObject *rows)
{
    if (!PyDict_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "rows are a dictionary");
        return NULL;
    }
    Py_ssize_t at = 0, size = 0;
    PyObject *key, *value;
    while (PyDict_Next(rows, &at, &key, &value)) {
        if (!are_of_row(key, value)) {
            PyErr_SetString(PyExc_TypeError, "a change is a key and a value");
            return NULL;
        }
        size += CHANGE_HEAD_BYTES + PyBytes_GET_SIZE(key) + (value == Py_None ? 0 : PyBytes_GET_SIZE(value));
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    if (made == NULL)
        return NULL;
    char *to = PyBytes_AS_STRING(made);
    at = 0;
    while (PyDict_Next(rows, &at, &key, &value)) {
        size_t key_size = PyBytes_GET_SIZE(key), value_size = value == Py_None ? 0 : PyBytes_GET_SIZE(value);
        to = in_big_endian(to, key_size, 2);
        to = in_big_endian(to, value == Py_None ? REMOVED : value_size, 4);
        memcpy(to, PyBytes_AS_STRING(key), key_size);
        to += key_size;
        if (value_size)
            memcpy(to, PyBytes_AS_STRING(value), value_size);
        to += value_size;
    }
    return made;
}

static PyMethodDef methods[] = {
    {"digest", digest, METH_O, NULL},
    {"member_rows", (PyCFunction)(void (*)(void))member_rows, METH_FASTCALL, NULL},
    {"members_of", members_of, METH_O, NULL},
    {"field", (PyCFunction)(void (*)(void))field, METH_FASTCALL, NULL},
    {"register", register_of, METH_O, NULL},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL, NULL},
    {"scored", (PyCFunction)(void (*)(void))scored, METH_FASTCALL, NULL},
    {"left_of", (PyCFunction)(void (*)(void))left_of, METH_FASTCALL, NULL},
    {"right_of", (PyCFunction)(void (*)(void))right_of, METH_FASTCALL, NULL},
    {"put_in", (PyCFunction)(void (*)(void))put_in, METH_FASTCALL, NULL},
    {"take_out", (PyCFunction)(void (*)(void))take_out, METH_FASTCALL, NULL},
    {"element", (PyCFunction)(void (*)(void))element, METH_FASTCALL, NULL},
    {"key_record", (PyCFunction)(void (*)(void))key_record, METH_FASTCALL, NULL},
    {"posts", (PyCFunction)(void (*)(void))posts, METH_FASTCALL, NULL},
    {"words", words, METH_O, NULL},
    {"rows_in_order", rows_in_order, METH_O, NULL},
    {"bytes_of_rows", bytes_of_rows, METH_O, NULL},
    {"changes", changes, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_key_bytes", "Keys of records.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__key_bytes(void) { return PyModule_Create(&module); }
