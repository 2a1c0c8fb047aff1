"""One Redis; a Cluster of six; a master with its replica and three Sentinels."""
import os
import subprocess

from service.nodes import about, address, fail, free_port, launch, make_node, need, wait_until, write


def ask(node, *words):
    done = subprocess.run(["redis-cli", "-h", "127.0.0.1", "-p", str(about(node)["port"]), *words], capture_output=True,
                          text=True, errors="replace")
    return done.stdout


def answers(node):
    return ask(node, "PING").strip() == "PONG"


def redis_node(folder, name, port, settings):
    need("redis-server", "redis-server")
    chosen = {"bind": "127.0.0.1", "port": port, "save": "", "shutdown-timeout": 0, **settings}
    words = [word for key, value in chosen.items() for word in (f"--{key}", str(value))]
    return make_node(folder, name, lambda node: ["redis-server", *words, "--dir", os.path.join(node, "data")], port)


def make_redis(folder, port, settings):
    redis_node(folder, "redis", port, settings)


def start_redis(nodes):
    launch(nodes[0])
    wait_until("Redis", nodes, lambda: answers(nodes[0]))
    return {"REDIS_URL": f"redis://{address(nodes[0])}/0"}


def make_cluster(folder, port, settings):
    for number in range(6):
        redis_node(folder, f"node{number + 1}", free_port() if number else port,
                   {"cluster-enabled": "yes", "cluster-node-timeout": 1000, "repl-diskless-sync-delay": 0, "cluster-port": free_port(),
                    "cluster-config-file": "nodes.conf", **settings})


def start_cluster(nodes):
    """Three masters with a replica each; nodes that know each other keep their slots."""
    for node in nodes:
        launch(node)
    wait_until("a node of the Redis Cluster", nodes, lambda: all(map(answers, nodes)))
    if "cluster_known_nodes:1\n" in ask(nodes[0], "CLUSTER", "INFO").replace("\r", ""):
        done = subprocess.run(["redis-cli", "--cluster", "create", *map(address, nodes), "--cluster-replicas", "1", "--cluster-yes"],
                              capture_output=True, text=True)
        if done.returncode:
            fail(f"redis-cli --cluster create failed:\n{done.stdout}{done.stderr}")

    def whole():
        said = [ask(node, "CLUSTER", "INFO") for node in nodes]
        roles = [ask(node, "INFO", "replication") for node in nodes]
        return all("cluster_state:ok" in one and "cluster_known_nodes:6" in one for one in said) and all(
            "master_link_status:up" in one or ("role:master" in one and "state=online" in one) for one in roles)

    wait_until("the Redis Cluster", nodes, whole)
    return {"CLUSTER_URL": "redis+cluster://" + ",".join(map(address, nodes))}


def make_sentinel(folder, port, settings):
    redis_node(folder, "redis1", port, settings)
    redis_node(folder, "redis2", free_port(), {"replicaof": f"127.0.0.1 {port}", "repl-diskless-sync-delay": 0, **settings})
    for number in (1, 2, 3):
        own = free_port()

        def command(node):
            write(os.path.join(node, "sentinel.conf"), f"bind 127.0.0.1\nport {own}\ndir {node}/data\n"
                  f"sentinel monitor doppel 127.0.0.1 {port} 2\nsentinel down-after-milliseconds doppel 1000\n"
                  "sentinel failover-timeout doppel 5000\n")
            return ["redis-server", os.path.join(node, "sentinel.conf"), "--sentinel"]

        make_node(folder, f"sentinel{number}", command, own)


def start_sentinel(nodes):
    """A master, its replica, and three Sentinels, two of which decide."""
    servers, watchers = nodes[:2], nodes[2:]
    for node in servers:
        launch(node)
        wait_until("Redis", [node], lambda: answers(node))
    wait_until("Redis", servers, lambda: any("state=online" in ask(node, "INFO", "replication") for node in servers))
    for node in watchers:
        launch(node)

    def agreed():
        said = [ask(node, "INFO", "sentinel") for node in watchers]
        return all("status=ok" in one and "slaves=1,sentinels=3" in one for one in said)

    wait_until("the Sentinels", nodes, agreed)
    return {"SENTINEL_URL": f"redis+sentinel://{','.join(map(address, watchers))}/doppel"}
