/* Small requests from many connections: as fast as a broker answers, with so many in flight on each.

     requests PORT CONNECTIONS DEPTH SECONDS HEX     -> requests/s, p50, p99 in microseconds

   HEX is one whole frame, length included; it is sent again and again. The first 0.3 s do not count. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 17, LONGEST_US = 2000000, WARM_NS = 300000000 };

typedef struct {
    int fd;
    int64_t *sent; /* a ring: when each request in flight was written */
    long first, next;
    size_t have;
    unsigned char in[ROOM];
} connection;

static unsigned char *frames;
static size_t frame_size;
static int depth;
static unsigned histogram[LONGEST_US];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void ask(connection *peer, int count)
{
    int64_t now = nanoseconds();
    size_t size = frame_size * count, done = 0;
    for (int i = 0; i < count; i++)
        peer->sent[peer->next++ % depth] = now;
    while (done < size) { /* a few kilobytes: the socket always has room, or soon will */
        ssize_t wrote = write(peer->fd, frames + done, size - done);
        if (wrote < 0 && errno != EAGAIN)
            fail("write");
        done += wrote > 0 ? wrote : 0;
    }
}

/* Whole answers in what was received; the rest moves to the front. */
static int answers(connection *peer, int counting)
{
    size_t at = 0;
    int count = 0;
    int64_t now = nanoseconds();
    while (peer->have - at >= 4) {
        uint32_t length;
        memcpy(&length, peer->in + at, 4);
        length = ntohl(length);
        if (length > ROOM - 4) {
            errno = EMSGSIZE;
            fail("answer");
        }
        if (peer->have - at < 4 + (size_t)length)
            break;
        at += 4 + length;
        long took = (now - peer->sent[peer->first++ % depth]) / 1000;
        if (counting)
            histogram[took < LONGEST_US ? took : LONGEST_US - 1]++;
        count++;
    }
    memmove(peer->in, peer->in + at, peer->have - at);
    peer->have -= at;
    return count;
}

static connection *connected(int port, int epoll)
{
    connection *peer = calloc(1, sizeof *peer);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int yes = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer->fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail("connect");
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    peer->sent = calloc(depth, sizeof *peer->sent);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    epoll_ctl(epoll, EPOLL_CTL_ADD, peer->fd, &event);
    return peer;
}

static long percentile(long count, double part)
{
    long sum = 0;
    for (long i = 0; i < LONGEST_US; i++)
        if ((sum += histogram[i]) >= count * part)
            return i;
    return LONGEST_US;
}

int main(int c, char **v)
{
    if (c != 6) {
        fprintf(stderr, "requests PORT CONNECTIONS DEPTH SECONDS HEX\n");
        return 2;
    }
    int connections = atoi(v[2]), epoll = epoll_create1(0);
    double seconds = atof(v[4]);
    long counted = 0;
    depth = atoi(v[3]);
    frame_size = strlen(v[5]) / 2;
    frames = malloc(frame_size * depth);
    for (size_t i = 0; i < frame_size * depth; i++)
        sscanf(v[5] + 2 * (i % frame_size), "%2hhx", &frames[i]);

    connection **peers = calloc(connections, sizeof *peers);
    for (int i = 0; i < connections; i++)
        peers[i] = connected(atoi(v[1]), epoll);
    int64_t counts_from = nanoseconds() + WARM_NS, end = counts_from + (int64_t)(seconds * 1e9);
    for (int i = 0; i < connections; i++)
        ask(peers[i], depth);
    for (int64_t now; (now = nanoseconds()) < end;) {
        struct epoll_event ready[256];
        int count = epoll_wait(epoll, ready, 256, 100);
        for (int i = 0; i < count; i++) {
            connection *peer = ready[i].data.ptr;
            ssize_t got = read(peer->fd, peer->in + peer->have, ROOM - peer->have);
            if (got <= 0)
                fail("the broker closed a connection");
            peer->have += got;
            int answered = answers(peer, now >= counts_from);
            if (now >= counts_from)
                counted += answered;
            if (answered)
                ask(peer, answered);
        }
    }
    printf("%.1f %ld %ld\n", counted / seconds, percentile(counted, 0.5), percentile(counted, 0.99));
    return 0;
}
