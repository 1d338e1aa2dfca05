/*
 * alg/pktwin.h - numbered packets of a byte stream: what is out, what has arrived
 *
 * For transports that number packets and acknowledge each one (NDP, UEC, fixed windows). A packet
 * keeps its number and its bytes when it is sent again. The sender holds a ring over the numbers
 * [una, nxt) with one entry each; what is lost stands in a list in the order in which it was found.
 * The receiver holds a ring over [cum, cum + room) with the length of each packet that has come, and
 * moves cum over those in order. Both rings grow by doubling and are kept, so that a packet costs
 * no allocation once the window has been as wide.
 *
 * Numbers are 64 bits here and 32 on the wire; gw_pw_number() widens them.
 */
#ifndef GRADWIRE_ALG_PKTWIN_H
#define GRADWIRE_ALG_PKTWIN_H

#include <gradwire/base.h>

enum gw_pw_state { GW_PW_ACKED, GW_PW_OUT, GW_PW_LOST };

struct gw_pw_pkt {
    uint64_t seq;                /* stream offset of its first byte                            */
    uint64_t sent_ps;            /* last                                                       */
    uint32_t len;
    uint32_t next, prev;         /* LOST: low halves of the neighbours' numbers in the list    */
    uint8_t  state;              /* enum gw_pw_state                                           */
    bool     again;              /* was sent more than once                                    */
};
_Static_assert(sizeof(struct gw_pw_pkt) <= 32, "two entries a cache line");

struct gw_pw_tx {                /* zero-initialised: empty                                    */
    struct gw_pw_pkt *ring;      /* owner: the window; release it                              */
    uint32_t room;               /* power of two                                               */
    uint32_t out_pkts, lost_pkts;
    uint64_t una, nxt;           /* numbers: oldest not acknowledged, first never used         */
    uint64_t seq;                /* first byte that was never sent                             */
    uint64_t out_bytes, lost_bytes;
    uint64_t lost_head, lost_tail;  /* valid if lost_pkts                                      */
};

struct gw_pw_rx {                /* zero-initialised: empty                                    */
    uint32_t *ring;              /* length of what has come, 0: missing; owner: the window     */
    uint32_t  room;
    uint32_t  beyond;            /* packets above cum that have come                           */
    uint64_t  cum;               /* all below has come                                         */
    uint64_t  bytes;             /* in order                                                   */
};

/* The number whose low half is @low, nearest to @near. */
static inline uint64_t gw_pw_number(uint64_t near, uint32_t low)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

/* ---- sender ------------------------------------------------------------------------------- */

static inline struct gw_pw_pkt *gw_pw_at(const struct gw_pw_tx *w, uint64_t number)
{
    return &w->ring[number & (w->room - 1)];
}

/* Makes room for one packet more by @resize (as realloc). False: out of memory, nothing changed. */
static inline bool gw_pw_reserve(struct gw_pw_tx *w, void *(*resize)(void *p, size_t bytes))
{
    struct gw_pw_pkt *v;
    uint32_t room = w->room ? w->room * 2 : 64;

    if (GW_LIKELY(w->nxt - w->una < w->room))
        return true;
    v = (struct gw_pw_pkt *)resize(w->ring, room * sizeof *v);
    if (!v)
        return false;
    for (uint64_t i = w->una; i < w->nxt; i++)     /* into the upper half, where they belong   */
        if (i & w->room)
            v[i & (room - 1)] = v[i & (w->room - 1)];
    w->ring = v;
    w->room = room;
    return true;
}

/* The next new packet, of @len bytes; its number is nxt - 1 afterwards. Room must be reserved. */
static inline struct gw_pw_pkt *gw_pw_new(struct gw_pw_tx *w, uint32_t len, uint64_t now_ps)
{
    struct gw_pw_pkt *k = gw_pw_at(w, w->nxt++);

    *k = (struct gw_pw_pkt){ .seq = w->seq, .sent_ps = now_ps, .len = len, .state = GW_PW_OUT };
    w->seq += len;
    w->out_bytes += len;
    w->out_pkts++;
    return k;
}

/* Packet @number is lost, if it is out: last in the list. */
static inline bool gw_pw_lose(struct gw_pw_tx *w, uint64_t number)
{
    struct gw_pw_pkt *k;

    if (number < w->una || number >= w->nxt || gw_pw_at(w, number)->state != GW_PW_OUT)
        return false;
    k = gw_pw_at(w, number);
    k->state = GW_PW_LOST;
    w->out_bytes -= k->len;
    w->lost_bytes += k->len;
    w->out_pkts--;
    if (w->lost_pkts++)
        gw_pw_at(w, w->lost_tail)->next = (uint32_t)number;
    else
        w->lost_head = number;
    k->prev = (uint32_t)w->lost_tail;
    w->lost_tail = number;
    return true;
}

/* Is @number in the window, and was it sent last at @stamp_ps? An answer to an earlier try is not. */
static inline bool gw_pw_sent_at(const struct gw_pw_tx *w, uint64_t number, uint64_t stamp_ps)
{
    return number >= w->una && number < w->nxt && gw_pw_at(w, number)->sent_ps == stamp_ps;
}

static inline void gw_pw_unlist(struct gw_pw_tx *w, uint64_t number)
{
    struct gw_pw_pkt *k = gw_pw_at(w, number);

    w->lost_bytes -= k->len;
    if (!--w->lost_pkts)
        return;
    if (number == w->lost_head)
        w->lost_head = gw_pw_number(number, k->next);
    else
        gw_pw_at(w, gw_pw_number(number, k->prev))->next = k->next;
    if (number == w->lost_tail)
        w->lost_tail = gw_pw_number(number, k->prev);
    else
        gw_pw_at(w, gw_pw_number(number, k->next))->prev = k->prev;
}

/* Takes the packet that was found lost first off the list, to be sent again; NULL: none is lost. */
static inline struct gw_pw_pkt *gw_pw_again(struct gw_pw_tx *w, uint64_t now_ps, uint64_t *number)
{
    struct gw_pw_pkt *k;

    if (!w->lost_pkts)
        return NULL;
    *number = w->lost_head;
    k = gw_pw_at(w, *number);
    gw_pw_unlist(w, *number);
    k->state = GW_PW_OUT;
    k->again = true;
    k->sent_ps = now_ps;
    w->out_bytes += k->len;
    w->out_pkts++;
    return k;
}

/* Packet @number has arrived; returns its bytes, 0: known before. */
static inline uint32_t gw_pw_ack(struct gw_pw_tx *w, uint64_t number)
{
    struct gw_pw_pkt *k;

    if (number < w->una || number >= w->nxt)
        return 0;
    k = gw_pw_at(w, number);
    if (k->state == GW_PW_ACKED)
        return 0;
    if (k->state == GW_PW_LOST) {
        gw_pw_unlist(w, number);
    } else {
        w->out_bytes -= k->len;
        w->out_pkts--;
    }
    k->state = GW_PW_ACKED;
    while (w->una < w->nxt && gw_pw_at(w, w->una)->state == GW_PW_ACKED)
        w->una++;
    return k->len;
}

/* All below @cum has arrived; returns the bytes that were not known to. */
static inline uint64_t gw_pw_ack_below(struct gw_pw_tx *w, uint64_t cum)
{
    uint64_t bytes = 0;

    while (w->una < cum && w->una < w->nxt)
        bytes += gw_pw_ack(w, w->una);
    return bytes;
}

/* First stream offset that is not known to have arrived. */
static inline uint64_t gw_pw_acked_to(const struct gw_pw_tx *w)
{
    return w->una < w->nxt ? gw_pw_at(w, w->una)->seq : w->seq;
}

/* What is out since @before_ps or longer is lost; returns how many packets. */
static inline uint32_t gw_pw_expire(struct gw_pw_tx *w, uint64_t before_ps)
{
    uint32_t n = 0;

    for (uint64_t i = w->una; i < w->nxt && w->out_pkts; i++)
        if (gw_pw_at(w, i)->state == GW_PW_OUT && gw_pw_at(w, i)->sent_ps <= before_ps)
            n += gw_pw_lose(w, i);
    return n;
}

/* ---- receiver ----------------------------------------------------------------------------- */

static inline bool gw_pw_rx_grow(struct gw_pw_rx *w, uint64_t number,
                                 void *(*resize)(void *p, size_t bytes))
{
    uint32_t room = w->room ? w->room : 64, old = w->room, *v;

    while (number - w->cum >= room) {
        if (room > UINT32_MAX / 4)
            return false;
        room *= 2;
    }
    v = (uint32_t *)resize(w->ring, room * sizeof *v);
    if (!v)
        return false;
    memset(v + old, 0, (room - old) * sizeof *v);
    /* Each of the old places belongs to one number in [cum, cum + old). */
    for (uint64_t i = w->cum; old && i < w->cum + old; i++) {
        uint32_t from = (uint32_t)(i & (old - 1)), to = (uint32_t)(i & (room - 1));

        if (from == to || !v[from])
            continue;
        v[to] = v[from];
        v[from] = 0;
    }
    w->ring = v;
    w->room = room;
    return true;
}

/*
 * Packet @number with @len bytes has come. Returns whether it is new; cum and bytes move. Out of
 * memory it counts as not come.
 */
static inline bool gw_pw_rx_take(struct gw_pw_rx *w, uint64_t number, uint32_t len,
                                 void *(*resize)(void *p, size_t bytes))
{
    if (number < w->cum)
        return false;
    if (GW_LIKELY(number == w->cum && !w->beyond)) {
        w->cum++;
        w->bytes += len;
        return true;
    }
    if (number - w->cum >= w->room && !gw_pw_rx_grow(w, number, resize))
        return false;
    if (w->ring[number & (w->room - 1)])
        return false;
    w->ring[number & (w->room - 1)] = len;
    w->beyond++;
    while (w->beyond && w->ring[w->cum & (w->room - 1)]) {
        w->bytes += w->ring[w->cum & (w->room - 1)];
        w->ring[w->cum & (w->room - 1)] = 0;
        w->cum++;
        w->beyond--;
    }
    return true;
}

#endif
