/* librdkafka as a bench: write flat out, read flat out, or time each record from writer to reader.

     stream write  BROKERS TOPIC PARTITIONS SIZE COUNT [name=value ...]   -> megabytes/s, records/s
     stream read   BROKERS TOPIC PARTITIONS COUNT      [name=value ...]   -> megabytes/s, records/s
     stream travel BROKERS TOPIC SIZE COUNT RATE       [name=value ...]   -> p50, p99 in microseconds

   name=value are librdkafka settings; those beginning with "reader." go to the reader of `travel`
   alone. One line on stdout, nothing else; whatever goes wrong ends it with a line on stderr. */
#define _GNU_SOURCE
#include "librdkafka.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 120, BATCH = 10000, LONGEST_US = 5000000 };

static long delivered, failed;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    _exit(1);
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static double seconds_since(int64_t start)
{
    return (nanoseconds() - start) / 1e9;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != 0)
        fail(error);
}

/* The settings that begin with `prefix` are taken without it; those of the other side are left. */
static void set_all(rd_kafka_conf_t *conf, int count, char **settings, const char *prefix)
{
    for (int i = 0; i < count; i++) {
        char name[256];
        const char *value = strchr(settings[i], '=');
        int for_reader = strncmp(settings[i], "reader.", 7) == 0;
        if (!value || for_reader != (*prefix != 0))
            continue;
        const char *start = settings[i] + strlen(prefix);
        snprintf(name, sizeof name, "%.*s", (int)(value - start), start);
        set(conf, name, value + 1);
    }
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    (void)client, (void)opaque;
    if (message->err)
        failed++;
    else
        delivered++;
}

static rd_kafka_t *client_of(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char error[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (!client)
        fail(error);
    return client;
}

static rd_kafka_t *new_writer(const char *brokers, const char *linger, int count, char **settings)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "linger.ms", linger);
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "queue.buffering.max.kbytes", "1000000");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set_all(conf, count, settings, "");
    return client_of(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_queue_t *new_reader(const char *brokers, const char *topic, int partitions, int count,
                                    char **settings, const char *prefix)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "group.id", "bench");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "queued.min.messages", "1000000");
    set_all(conf, count, settings, prefix);
    rd_kafka_t *client = client_of(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(places, topic, i)->offset = 0;
    rd_kafka_assign(client, places);
    return rd_kafka_queue_get_consumer(client);
}

/* One record to each partition, acknowledged: connections and leaders are known before the clock starts. */
static rd_kafka_topic_t *warm(rd_kafka_t *writer, const char *name, int partitions, void *payload, size_t size)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(writer, name, NULL);
    for (int i = 0; i < partitions; i++)
        rd_kafka_produce(topic, i, RD_KAFKA_MSG_F_COPY, payload, size, NULL, 0, NULL);
    rd_kafka_flush(writer, 20000);
    if (delivered != partitions)
        fail("the first records were not delivered");
    delivered = 0;
    return topic;
}

static void *text_of(size_t size)
{
    char *payload = malloc(size);
    for (size_t i = 0; i < size; i++)
        payload[i] = 'a' + (i * 31 + i / 26) % 26;
    return payload;
}

static void tell_rate(double bytes, long records, double seconds)
{
    printf("%.3f %.1f\n", bytes / seconds / 1e6, records / seconds);
}

static void write_flat_out(char **v, int extra, char **settings)
{
    int partitions = atoi(v[4]);
    long size = atol(v[5]), count = atol(v[6]);
    void *payload = text_of(size);
    rd_kafka_t *writer = new_writer(v[2], "5", extra, settings);
    rd_kafka_topic_t *topic = warm(writer, v[3], partitions, payload, size);
    int64_t start = nanoseconds();
    for (long i = 0; i < count; i++) {
        int partition = i / 128 % partitions;
        while (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, payload, size, NULL, 0, NULL) != 0)
            rd_kafka_poll(writer, 2);
        if (i % 128 == 0)
            rd_kafka_poll(writer, 0);
    }
    while (delivered + failed < count && seconds_since(start) < PATIENCE_S)
        rd_kafka_poll(writer, 5);
    if (delivered != count)
        fail("not all records were delivered");
    tell_rate((double)count * size, count, seconds_since(start));
}

static void read_flat_out(char **v, int extra, char **settings)
{
    static rd_kafka_message_t *messages[BATCH];
    long count = atol(v[5]), seen = 0;
    double bytes = 0;
    rd_kafka_queue_t *queue = new_reader(v[2], v[3], atoi(v[4]), extra, settings, "");
    int64_t asked = nanoseconds(), start = 0;
    while (seen < count) {
        ssize_t got = rd_kafka_consume_batch_queue(queue, 1000, messages, BATCH);
        for (ssize_t i = 0; i < got; i++) {
            if (messages[i]->err)
                fail(rd_kafka_err2str(messages[i]->err));
            if (!start)
                start = nanoseconds();
            bytes += messages[i]->len;
            seen++;
            rd_kafka_message_destroy(messages[i]);
        }
        if (seconds_since(asked) > PATIENCE_S)
            fail("not all records were read");
    }
    tell_rate(bytes, seen, seconds_since(start));
}

static rd_kafka_queue_t *arrivals;
static unsigned *histogram;
static volatile long arrived;

static void *note_arrivals(void *expected)
{
    static rd_kafka_message_t *messages[BATCH];
    while (arrived < *(long *)expected) {
        ssize_t got = rd_kafka_consume_batch_queue(arrivals, 100, messages, 1);
        for (ssize_t i = 0; i < got; i++) {
            int64_t sent = 0;
            if (messages[i]->err)
                fail(rd_kafka_err2str(messages[i]->err));
            memcpy(&sent, messages[i]->payload, sizeof sent);
            if (sent > 0) {
                long took = (nanoseconds() - sent) / 1000;
                histogram[took < LONGEST_US ? took : LONGEST_US - 1]++;
                arrived++;
            }
            rd_kafka_message_destroy(messages[i]);
        }
    }
    return NULL;
}

static long percentile(long count, double part)
{
    long sum = 0;
    for (long i = 0; i < LONGEST_US; i++)
        if ((sum += histogram[i]) >= count * part)
            return i;
    return LONGEST_US;
}

static void time_travel(char **v, int extra, char **settings)
{
    long size = atol(v[4]), count = atol(v[5]);
    double rate = atof(v[6]);
    pthread_t reader;
    int64_t *stamp = calloc(1, size < 8 ? 8 : size);
    histogram = calloc(LONGEST_US, sizeof *histogram);
    rd_kafka_t *writer = new_writer(v[2], "0", extra, settings);
    rd_kafka_topic_t *topic = warm(writer, v[3], 1, stamp, size); /* a stamp of 0 is not counted */
    arrivals = new_reader(v[2], v[3], 1, extra, settings, "reader.");
    pthread_create(&reader, NULL, note_arrivals, &count);
    usleep(500000);
    int64_t start = nanoseconds();
    for (long i = 0; i < count; i++) {
        double due = i / rate;
        while (seconds_since(start) < due) {
            rd_kafka_poll(writer, 0);
            usleep(50);
        }
        *stamp = nanoseconds();
        if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, stamp, size, NULL, 0, NULL) != 0)
            fail("a record was not taken");
    }
    rd_kafka_flush(writer, 20000);
    while (arrived < count && seconds_since(start) < PATIENCE_S)
        usleep(1000);
    if (arrived < count)
        fail("not all records arrived");
    printf("%ld %ld\n", percentile(count, 0.5), percentile(count, 0.99));
}

int main(int c, char **v)
{
    if (c >= 7 && strcmp(v[1], "write") == 0)
        write_flat_out(v, c - 7, v + 7);
    else if (c >= 6 && strcmp(v[1], "read") == 0)
        read_flat_out(v, c - 6, v + 6);
    else if (c >= 7 && strcmp(v[1], "travel") == 0)
        time_travel(v, c - 7, v + 7);
    else if (c == 2 && strcmp(v[1], "version") == 0)
        puts(rd_kafka_version_str());
    else
        fail("see the first lines of stream.c");
    fflush(stdout);
    _exit(0); /* nobody measures how long a client takes to say goodbye */
}
