/*
 * test_seqset.c - sets of ranges against a plain array of flags
 */
#include "suite.h"

#include <gradwire/alg/seqset.h>
#include <gradwire/rng.h>

#include <stdlib.h>

#define SPACE 600u

/* Ranges in order, apart from each other, and exactly the flagged bytes. */
static bool agrees(const struct gw_seqset *s, const uint8_t *flag)
{
    uint32_t count = 0, i = s->head, prev = GW_SEQ_NIL;

    for (uint64_t x = 0; x < SPACE;) {
        if (!flag[x]) {
            x++;
            continue;
        }
        if (i == GW_SEQ_NIL || s->node[i].start != x || s->node[i].prev != prev)
            return false;
        while (x < SPACE && flag[x])
            x++;
        if (s->node[i].end != x)
            return false;
        count++;
        prev = i;
        i = s->node[i].next;
    }
    return i == GW_SEQ_NIL && s->tail == prev && s->count == count;
}

static void adds(void)
{
    for (uint32_t seed = 0; seed < 50; seed++) {
        uint8_t flag[SPACE + 64] = { 0 };
        struct gw_seqset s;
        struct gw_rng r;

        gw_rng_open(&r, seed, "seqset");
        gw_seqset_init(&s);
        for (uint32_t k = 0; k < 300; k++) {
            uint64_t a = gw_rng_below(&r, SPACE - 16), b = a + 1 + gw_rng_below(&r, 15);
            uint32_t i;

            CU_ASSERT_FATAL(gw_seqset_reserve(&s, 1, realloc));
            i = gw_seqset_add(&s, a, b);
            memset(flag + a, 1, b - a);
            CHECK_ROW(agrees(&s, flag), "seed %u, step %u: [%u, %u)", seed, k, (unsigned)a,
                      (unsigned)b);
            CHECK_ROW(s.node[i].start <= a && s.node[i].end >= b, "seed %u, step %u: node", seed,
                      k);
            if (k % 3 == 0 && s.count > 4) {             /* and some go again                     */
                memset(flag + s.node[s.head].start, 0, s.node[s.head].end - s.node[s.head].start);
                gw_seqset_remove(&s, s.head);
                CHECK_ROW(agrees(&s, flag), "seed %u, step %u: removal", seed, k);
            }
        }
        gw_seqset_fini(&s, free);
    }
}

/* From any finger: the first range that ends behind x. */
static void finds(void)
{
    struct gw_seqset s;
    struct gw_rng r;

    gw_rng_open(&r, 1, "seqset/find");
    gw_seqset_init(&s);
    CU_ASSERT(gw_seqset_find(&s, 0) == GW_SEQ_NIL);
    CU_ASSERT_FATAL(gw_seqset_reserve(&s, 100, realloc));
    for (uint64_t k = 0; k < 50; k++)                    /* [10, 15), [20, 25) ...                */
        gw_seqset_add(&s, 10 * k + 10, 10 * k + 15);
    for (uint32_t k = 0; k < 2000; k++) {
        uint64_t x = gw_rng_below(&r, 520);
        uint64_t want = x < 10 ? 10 : x / 10 * 10 + (x % 10 < 5 ? 0 : 10);
        uint32_t i = gw_seqset_find(&s, x);

        if (want > 500) {
            CHECK_ROW(i == GW_SEQ_NIL, "%u: found", (unsigned)x);
            continue;
        }
        CHECK_ROW(i != GW_SEQ_NIL && s.node[i].start == want, "%u: want %u", (unsigned)x,
                  (unsigned)want);
        if (k % 5 == 0)
            gw_seqset_touch(&s, i);
    }
    gw_seqset_fini(&s, free);
}

static void splits_and_queues(void)
{
    struct gw_seq_queue q;
    struct gw_seqset s;
    uint32_t a, b, c;

    gw_seqset_init(&s);
    gw_seq_queue_init(&q);
    CU_ASSERT_FATAL(gw_seqset_reserve(&s, 3, realloc));
    a = gw_seqset_insert(&s, GW_SEQ_NIL, 5, 20);
    s.node[a].stamp_ps = 77;
    s.node[a].state = 2;
    gw_seq_queue_insert(&s, &q, GW_SEQ_NIL, a);
    c = gw_seqset_split(&s, a, 15);
    b = gw_seqset_split(&s, a, 10);
    gw_seq_queue_insert(&s, &q, a, c);
    gw_seq_queue_insert(&s, &q, a, b);
    CU_ASSERT(s.node[a].end == 10 && s.node[b].start == 10 && s.node[b].end == 15);
    CU_ASSERT(s.node[c].start == 15 && s.node[c].end == 20 && s.tail == c && s.count == 3);
    CU_ASSERT(s.node[b].stamp_ps == 77 && s.node[c].state == 2);
    CU_ASSERT(q.head == a && s.node[a].qnext == b && s.node[b].qnext == c && q.tail == c);
    gw_seq_queue_remove(&s, &q, b);
    CU_ASSERT(s.node[a].qnext == c && s.node[c].qprev == a);
    gw_seq_queue_remove(&s, &q, c);
    gw_seq_queue_remove(&s, &q, a);
    CU_ASSERT(q.head == GW_SEQ_NIL && q.tail == GW_SEQ_NIL);
    gw_seqset_fini(&s, free);
}

static void *no_memory(void *p, size_t bytes)
{
    (void)p;
    (void)bytes;
    return NULL;
}

static void out_of_memory(void)
{
    struct gw_seqset s;

    gw_seqset_init(&s);
    CU_ASSERT(!gw_seqset_reserve(&s, 1, no_memory));
    CU_ASSERT_FATAL(gw_seqset_reserve(&s, 16, realloc));
    for (uint64_t k = 0; k < 16; k++)
        gw_seqset_add(&s, 2 * k, 2 * k + 1);
    CU_ASSERT(!gw_seqset_reserve(&s, 1, no_memory) && s.count == 16);
    gw_seqset_fini(&s, free);
}

static const struct gw_case cases[] = {
    { "random ranges", adds },
    { "searching", finds },
    { "splits and queues", splits_and_queues },
    { "out of memory", out_of_memory },
    { NULL, NULL },
};

const struct gw_suite suite_seqset = { "seqset", cases };
