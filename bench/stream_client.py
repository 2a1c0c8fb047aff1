"""The other side of bench/stream.py: fills topics, sends at a steady rate and waits for the answers, copies a topic.

    stream_client.py topics BROKERS TOPIC...                       makes them, with 4 partitions each
    stream_client.py remove BROKERS TOPIC...
    stream_client.py fill BROKERS TOPIC COUNT                      pages of 2 KB, a tenth of them copies
    stream_client.py steady BROKERS IN UNIQUE DUPLICATES RATE SECONDS
    stream_client.py loop BROKERS IN OUT COUNT BATCH               consume, read JSON, produce, in transactions
"""
import json
import multiprocessing
import random
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
WORDS = 300  # a page, about 2 KB
COPY_EVERY = 10
PATIENCE = 120  # seconds


def topics(brokers, *names):
    admin = AdminClient({"bootstrap.servers": brokers})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        made.result(PATIENCE)
    while not set(names) <= set(admin.list_topics(timeout=PATIENCE).topics):  # the broker hears of them a little later
        time.sleep(0.05)


def remove(brokers, *names):
    admin = AdminClient({"bootstrap.servers": brokers})
    for gone in admin.delete_topics(list(names)).values():
        gone.result(PATIENCE)


# ---- pages


def texts():
    """Texts by chance, without end; each tenth has the words of the one before it, written differently."""
    rng, letters = random.Random(1), "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(30000)]
    while True:
        for _ in range(COPY_EVERY - 1):
            text = " ".join(rng.choices(words, k=WORDS))
            yield text
        yield text.capitalize() + "."


def pages(count, name="page"):
    for number, text in zip(range(count), texts()):
        yield b'{"id":"%s-%d","url":"https://www.example.org/%s/%d.html","text":"%s"}' % (
            name.encode(), number, name.encode(), number, text.encode())


def producer(brokers, **more):
    return Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "1", "queue.buffering.max.messages": 1000000, **more})


def send(to, topic, value, number, **more):
    """When its queue is full, it is waited for. A copy goes where its original went."""
    while True:
        try:
            return to.produce(topic, value=value, partition=number // COPY_EVERY % PARTITIONS, **more)
        except BufferError:
            to.poll(0.1)


def fill(brokers, topic, count):
    to = producer(brokers)
    for number, page in enumerate(pages(int(count))):
        send(to, topic, page, number)
        to.poll(0)
    if to.flush(PATIENCE):
        sys.exit("stream_client: not all pages were taken")


# ---- at a steady rate


def consumer(brokers, names, **more):
    """Of all partitions of the topics, from their beginning; what is committed."""
    found = Consumer({"bootstrap.servers": brokers, "group.id": f"reader-{time.time_ns()}", "enable.auto.commit": False,
                      "isolation.level": "read_committed", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 5, **more})
    found.assign([TopicPartition(name, partition, 0) for name in names for partition in range(PARTITIONS)])
    return found


def send_steadily(brokers, topic, made, rate):
    """Each page has the time it was sent in a header; what is late is sent at once."""
    to = producer(brokers, **{"linger.ms": 1})
    started = time.time()
    for number, page in enumerate(made):
        wait = started + number / rate - time.time()
        if wait > 0.001:
            to.poll(0)
            time.sleep(wait)
        send(to, topic, page, number, headers={"sent": repr(time.time())})
    to.flush(PATIENCE)
    print(f"rate\t{len(made) / (time.time() - started):.6g}", flush=True)


def steady(brokers, topic, unique, duplicates, rate, seconds):
    warm = 2 * int(rate)  # of the first two seconds, which are not counted
    made = list(pages(int(rate) * int(seconds) + warm, "steady"))
    reader = consumer(brokers, (unique, duplicates))
    sender = multiprocessing.Process(target=send_steadily, args=(brokers, topic, made, float(rate)))
    taken, limit = [], time.time() + int(seconds) + PATIENCE
    sender.start()
    while len(taken) < len(made):
        for record in reader.consume(500, 0.05):
            if record.error():
                sys.exit(f"stream_client: {record.error()}")
            taken.append(time.time() - float(dict(record.headers())["sent"]))
        if time.time() > limit:
            sys.exit(f"stream_client: {len(taken)} of {len(made)} pages came back")
    sender.join()
    taken = sorted(taken[warm:])
    print(f"median\t{taken[len(taken) // 2]:.6g}\np99\t{taken[len(taken) * 99 // 100]:.6g}\nlongest\t{taken[-1]:.6g}")


# ---- the loop without doppel


def loop(brokers, topic, out, count, batch):
    count, batch = int(count), int(batch)
    reader = consumer(brokers, [topic])
    to = producer(brokers, **{"transactional.id": f"loop-{time.time_ns()}", "acks": "all"})
    to.init_transactions(PATIENCE)
    done, started = 0, None
    while done < count:
        records = reader.consume(batch, 1)
        started = started or time.perf_counter()
        if not records:
            continue
        to.begin_transaction()
        for record in records:
            page = json.loads(record.value())
            to.produce(out, value=record.value(), key=page["id"])
        to.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata(), PATIENCE)
        to.commit_transaction(PATIENCE)
        done += len(records)
    print(f"rate\t{done / (time.perf_counter() - started):.6g}")


if __name__ == "__main__":
    {"topics": topics, "remove": remove, "fill": fill, "steady": steady, "loop": loop}[sys.argv[1]](*sys.argv[2:])
