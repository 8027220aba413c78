// The load of etcd, by its own client: etcdload MODE ENDPOINTS COUNT OPEN. Prints one line of JSON.
//
// put, get: COUNT requests, OPEN at once, of values of 40 bytes at keys of 38 bytes; txn: puts in transactions of 100;
// fill: COUNT keys as quickly as it can; watch: puts one by one, each until a watch of the same client has shown it;
// clients, txns: puts and transactions of 100 by OPEN clients, each with its own connection to ENDPOINTS and one request open.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/clientv3"
)

var ctx = context.Background()
var began time.Time
var value = strings.Repeat("v", 40)

func key(n int64) string { return fmt.Sprintf("bench/home/kitchen/temperature-%08d", n) }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// spread does one(number) for all numbers below count, open at once, and returns the time of each.
func spread(count int64, open int, one func(int64)) []float64 {
	took := make([]float64, count)
	var next int64 = -1
	var all sync.WaitGroup
	for i := 0; i < open; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := atomic.AddInt64(&next, 1); n < count; n = atomic.AddInt64(&next, 1) {
				began := time.Now()
				one(n)
				took[n] = time.Since(began).Seconds()
			}
		}()
	}
	all.Wait()
	return took
}

func puts(client *clientv3.Client, first int64) {
	ops := make([]clientv3.Op, 100)
	for i := range ops {
		ops[i] = clientv3.OpPut(key(first*100+int64(i)), value)
	}
	_, err := client.Txn(ctx).Then(ops...).Commit()
	must(err)
}

// byClients lets each of so many clients do one request after the other, at these endpoints alone.
func byClients(endpoints []string, count int64, open int, one func(*clientv3.Client, int64)) []float64 {
	idle := make(chan *clientv3.Client, open)
	for i := 0; i < open; i++ {
		client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second})
		must(err)
		_, err = client.Get(ctx, "?")
		must(err)
		idle <- client
	}
	began = time.Now()
	return spread(count, open, func(n int64) {
		client := <-idle
		one(client, n)
		idle <- client
	})
}

func watched(client *clientv3.Client, count int64) []float64 {
	events := client.Watch(ctx, key(0), clientv3.WithCreatedNotify())
	<-events
	return spread(count, 1, func(int64) {
		_, err := client.Put(ctx, key(0), value)
		must(err)
		<-events
	})
}

func main() {
	mode, endpoints := os.Args[1], strings.Split(os.Args[2], ",")
	count, _ := strconv.ParseInt(os.Args[3], 10, 64)
	open, _ := strconv.Atoi(os.Args[4])
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second})
	must(err)
	put := func(n int64) { _, err := client.Put(ctx, key(n), value); must(err) }
	get := func(n int64) { _, err := client.Get(ctx, key(n)); must(err) }
	modes := map[string]func() []float64{
		"put":  func() []float64 { return spread(count, open, put) },
		"get":  func() []float64 { put(0); return spread(count, open, func(int64) { get(0) }) },
		"txn":  func() []float64 { return spread(count/100, open, func(n int64) { puts(client, n) }) },
		"fill": func() []float64 { return spread(count/100, 16, func(n int64) { puts(client, n) }) },
		"clients": func() []float64 {
			return byClients(endpoints, count, open, func(client *clientv3.Client, n int64) {
				_, err := client.Put(ctx, key(n), value)
				must(err)
			})
		},
		"txns":  func() []float64 { return byClients(endpoints, count/100, open, puts) },
		"watch": func() []float64 { return watched(client, count) },
	}
	must(client.Sync(ctx))
	began = time.Now()
	took := modes[mode]()
	seconds := time.Since(began).Seconds()
	sort.Float64s(took)
	must(json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"seconds": seconds, "per_second": float64(count) / seconds, "p50": took[len(took)/2], "p99": took[len(took)*99/100],
	}))
}
