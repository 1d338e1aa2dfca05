/*
 * driver - runs a fuzz target without libFuzzer
 *
 * driver [-s SECONDS] FILE|DIRECTORY...: gives every file to LLVMFuzzerTestOneInput(), then, for
 * SECONDS (default 0), mutants of them: bytes flipped, replaced by corner values, cut out, doubled,
 * or spliced from another file. The dice are fixed, so a failure comes back; it is in the sanitizer
 * or signal that ends the process, after the input was written to ./crash-driver.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1u << 20)         /* longer files are cut                                     */

struct input {
    uint8_t *data;
    size_t   size;
};

struct corpus {
    struct input *item;
    size_t        count;
};

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

static void *need(void *p)
{
    if (!p) {
        fputs("driver: out of memory\n", stderr);
        exit(2);
    }
    return p;
}

static void corpus_add_file(struct corpus *c, const char *path)
{
    FILE *f = fopen(path, "rb");
    struct input in;

    if (!f) {
        fprintf(stderr, "driver: %s cannot be read\n", path);
        exit(2);
    }
    in.data = need(malloc(INPUT_MAX));
    in.size = fread(in.data, 1, INPUT_MAX, f);
    fclose(f);
    c->item = need(realloc(c->item, (c->count + 1) * sizeof *c->item));
    c->item[c->count++] = in;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void corpus_add(struct corpus *c, const char *path)
{
    struct dirent **entry;
    struct stat st;
    int n;

    if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
        corpus_add_file(c, path);
        return;
    }
    n = scandir(path, &entry, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char name[4096];

        if (entry[i]->d_name[0] != '.' &&
            snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name) < (int)sizeof name)
            corpus_add(c, name);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

/* Gives an exact copy, so that a read past its end is seen; leaves it behind if it crashes. */
static void try_input(const uint8_t *data, size_t size)
{
    uint8_t *copy = need(malloc(size ? size : 1));
    FILE *f = fopen("crash-driver", "wb");

    if (f) {
        fwrite(data, 1, size, f);
        fclose(f);
    }
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate_once(const struct corpus *c, uint8_t *buf, size_t size, uint64_t *dice)
{
    static const uint8_t corner[] = { 0, 1, '\n', '"', ':', '-', '0', '9', 0x7f, 0x80, 0xff };
    uint32_t at = size ? draw(dice, (uint32_t)size) : 0, len;
    const struct input *other;

    switch (size ? draw(dice, 5) : 4) {
    case 0:
        buf[at] ^= (uint8_t)(1u << draw(dice, 8));
        return size;
    case 1:
        buf[at] = corner[draw(dice, sizeof corner)];
        return size;
    case 2:
        len = 1 + draw(dice, (uint32_t)(size - at));
        memmove(buf + at, buf + at + len, size - at - len);
        return size - len;
    case 3:
        len = 1 + draw(dice, (uint32_t)(size - at));
        if (size + len > INPUT_MAX)
            return size;
        memmove(buf + at + len, buf + at, size - at);
        return size + len;
    default:
        other = &c->item[draw(dice, (uint32_t)c->count)];
        len = other->size ? 1 + draw(dice, (uint32_t)other->size) : 0;
        if (at + len > INPUT_MAX)
            return size;
        memcpy(buf + at, other->data + other->size - len, len);
        return at + len > size ? at + len : size;
    }
}

static uint64_t fuzz(const struct corpus *c, unsigned seconds)
{
    uint8_t *buf = need(malloc(INPUT_MAX));
    uint64_t dice = 1, tries = 0;
    time_t end = time(NULL) + (time_t)seconds;

    while (time(NULL) < end) {
        const struct input *seed = &c->item[draw(&dice, (uint32_t)c->count)];
        size_t size = seed->size;

        memcpy(buf, seed->data, size);
        for (uint32_t n = 1 + draw(&dice, 6); n; n--)
            size = mutate_once(c, buf, size, &dice);
        try_input(buf, size);
        tries++;
    }
    free(buf);
    return tries;
}

int main(int argc, char **argv)
{
    struct corpus c = { 0 };
    unsigned seconds = 0;
    uint64_t tries = 0;
    int i = 1;

    if (argc > 2 && !strcmp(argv[1], "-s")) {
        seconds = (unsigned)strtoul(argv[2], NULL, 10);
        i = 3;
    }
    for (; i < argc; i++)
        corpus_add(&c, argv[i]);
    if (!c.count) {
        fputs("driver: no input; name files or a directory of them\n", stderr);
        return 2;
    }
    for (size_t k = 0; k < c.count; k++)
        try_input(c.item[k].data, c.item[k].size);
    if (seconds)
        tries = fuzz(&c, seconds);
    printf("%zu inputs, %llu mutants: no failure\n", c.count, (unsigned long long)tries);
    for (size_t k = 0; k < c.count; k++)
        free(c.item[k].data);
    free(c.item);
    remove("crash-driver");
    return 0;
}
