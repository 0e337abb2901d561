// The peer of `./dev bench etcd`: the same work as tests/bench/ours.c, written as one writes it with
// etcd's own Go client. Each command prints one JSON object with raw figures.
//
// Built with Debian's golang-go and golang-etcd-server-dev:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go build -o etcd_peer ./tests/bench/peer
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/mvcc/mvccpb"
)

// Memory is what a daemon keeps, not what it needed for a moment.
const settle = 3 * time.Second

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd_peer:", err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func cpu() time.Duration {
	var use syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func memory(name string) int {
	status, err := os.ReadFile("/proc/self/status")
	must(err)
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, name+":") {
			return number(strings.Fields(line)[1])
		}
	}
	return 0
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func percentile(values []time.Duration, share float64) float64 {
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	return ms(values[int(float64(len(values)-1)*share)])
}

func latency(cli *clientv3.Client, n int) {
	ctx := context.Background()
	events := cli.Watch(ctx, "/latency/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events // created
	timePut := func(opts ...clientv3.OpOption) time.Duration {
		start := time.Now()
		go func() {
			_, err := cli.Put(ctx, "/latency/key", "value", opts...)
			must(err)
		}()
		<-events
		return time.Since(start)
	}
	for i := 0; i < 50; i++ {
		timePut()
	}
	puts := make([]time.Duration, n)
	for i := range puts {
		puts[i] = timePut()
	}
	revokes := make([]time.Duration, n)
	for i := range revokes {
		lease, err := cli.Grant(ctx, 60)
		must(err)
		timePut(clientv3.WithLease(lease.ID))
		start := time.Now()
		go func() {
			_, err := cli.Revoke(ctx, lease.ID)
			must(err)
		}()
		<-events
		revokes[i] = time.Since(start)
	}
	fmt.Printf("{\"put_p50_ms\":%.4f,\"put_p99_ms\":%.4f,\"revoke_p50_ms\":%.4f,\"revoke_p99_ms\":%.4f}\n",
		percentile(puts, .5), percentile(puts, .99), percentile(revokes, .5), percentile(revokes, .99))
}

// One Get of everything (page 0) is what most programs do; pages at one revision need less memory.
func list(cli *clientv3.Client, prefix string, page int, keep func(*mvccpb.KeyValue)) int64 {
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	var rev int64
	for key := prefix; ; {
		answer, err := cli.Get(context.Background(), key, end, clientv3.WithRev(rev),
			clientv3.WithLimit(int64(page)))
		must(err)
		if rev == 0 {
			rev = answer.Header.Revision
		}
		for _, kv := range answer.Kvs {
			keep(kv)
		}
		if !answer.More {
			return rev
		}
		key = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

func watch(cli *clientv3.Client, prefix string, rev int64) clientv3.WatchChan {
	return cli.Watch(clientv3.WithRequireLeader(context.Background()), prefix,
		clientv3.WithPrefix(), clientv3.WithRev(rev+1), clientv3.WithCreatedNotify())
}

// Keeps either all of each pair, or what is needed to notice changes: the key and its revision.
func mirror(cli *clientv3.Client, prefix string, kind string, page int) {
	pairs := map[string]*mvccpb.KeyValue{}
	revisions := map[string]int64{}
	keep := func(kv *mvccpb.KeyValue) { pairs[string(kv.Key)] = kv }
	if kind == "revisions" {
		keep = func(kv *mvccpb.KeyValue) { revisions[string(kv.Key)] = kv.ModRevision }
	}
	used, start := cpu(), time.Now()
	rev := list(cli, prefix, page, keep)
	synced, usedNow := time.Since(start), cpu()
	<-watch(cli, prefix, rev)
	time.Sleep(settle)
	fmt.Printf("{\"synced_ms\":%.2f,\"cpu_ms\":%.2f,\"rss_kb\":%d,\"peak_kb\":%d,\"keys\":%d}\n",
		ms(synced), ms(usedNow-used), memory("VmRSS"), memory("VmHWM"), len(pairs)+len(revisions))
}

func events(cli *clientv3.Client, prefix string, n int) {
	copied := map[string]*mvccpb.KeyValue{}
	rev := list(cli, prefix, 0, func(kv *mvccpb.KeyValue) { copied[string(kv.Key)] = kv })
	stream := watch(cli, prefix, rev)
	<-stream
	fmt.Println("ready")
	var first time.Time
	var used time.Duration
	for seen := 0; seen < n; {
		answer, open := <-stream
		must(answer.Err())
		if !open {
			must(errors.New("the watch ended"))
		}
		if seen == 0 {
			first, used = time.Now(), cpu()
		}
		for _, event := range answer.Events {
			if event.Type == mvccpb.DELETE {
				delete(copied, string(event.Kv.Key))
			} else {
				copied[string(event.Kv.Key)] = event.Kv
			}
			seen++
		}
	}
	fmt.Printf("{\"events\":%d,\"events_per_s\":%.0f,\"cpu_us_per_event\":%.3f}\n", n,
		float64(n)/time.Since(first).Seconds(), float64(cpu()-used)/1e3/float64(n))
}

func ops(cli *clientv3.Client, n int) {
	used, start := cpu(), time.Now()
	for i := 0; i < n; i++ {
		_, err := cli.Put(context.Background(), "/ops/key", "value")
		must(err)
	}
	fmt.Printf("{\"puts_per_s\":%.0f,\"cpu_us_per_put\":%.2f}\n",
		float64(n)/time.Since(start).Seconds(), float64(cpu()-used)/1e3/float64(n))
}

func idle(cli *clientv3.Client, seconds int) {
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(6))
	must(err)
	_, err = cli.Put(context.Background(), "/idle/key", "", clientv3.WithLease(session.Lease()))
	must(err)
	rev := list(cli, "/idle/", 0, func(*mvccpb.KeyValue) {})
	<-watch(cli, "/idle/", rev)
	used := cpu()
	time.Sleep(time.Duration(seconds) * time.Second)
	fmt.Printf("{\"rss_kb\":%d,\"cpu_ms_per_min\":%.2f}\n", memory("VmRSS"),
		ms(cpu()-used)*60/float64(seconds))
}

// What keeps one agent registered, for `./dev bench agentd`: a lease, a key, and a watch of it, until
// it is killed.
func hold(cli *clientv3.Client, ttl int, name string) {
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(ttl))
	must(err)
	answer, err := cli.Put(context.Background(), "/go/"+name+"/live", "", clientv3.WithLease(session.Lease()))
	must(err)
	for range watch(cli, "/go/"+name+"/", answer.Header.Revision) {
	}
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: etcd_peer latency|mirror|events|ops|idle|session ENDPOINT ARGUMENT…")
		os.Exit(2)
	}
	cli, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{os.Args[2]},
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	must(err)
	argument := os.Args[3]
	switch os.Args[1] {
	case "latency":
		latency(cli, number(argument))
	case "mirror":
		mirror(cli, argument, os.Args[4], number(os.Args[5]))
	case "events":
		events(cli, argument, number(os.Args[4]))
	case "ops":
		ops(cli, number(argument))
	case "idle":
		idle(cli, number(argument))
	case "session":
		hold(cli, number(argument), os.Args[4])
	}
}
