// Command writes measures how many changes the API makes in a second, each on
// the disk before it is answered, for one client and for many.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	before := flag.String("before", "", "another build, measured by turns with it")
	many := flag.Int("clients", 16, "how many clients, beside one")
	rounds := flag.Int("n", 5, "how many rounds")
	each := flag.Duration("each", 2*time.Second, "how long a round of a candidate lasts")
	flag.Parse()
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = *many
	b := &bench{clients: []int{1, *many}, rounds: *rounds, each: *each}
	report.Main(5*time.Minute, func(ctx context.Context) error { return b.measure(ctx, *before, *binary) })
}

// bench is what is measured of each build.
type bench struct {
	clients []int
	rounds  int
	each    time.Duration
	builds  []*build
	syncs   []float64 // fsyncs of the disk in a second, of each round
}

// build is a daemon of one binary.
type build struct {
	name  string
	d     *daemon.Daemon
	c     *daemon.Client
	space string
	apps  atomic.Int64 // made so far

	rates map[int][]float64       // clients → writes in a second, of each round
	waits map[int][]time.Duration // clients → of each write
}

func (b *bench) measure(ctx context.Context, before, binary string) (err error) {
	defer func() {
		for _, one := range b.builds {
			if stopped := one.d.Stop(); err == nil {
				err = stopped
			}
		}
	}()
	for _, name := range []string{before, binary} {
		if name == "" {
			continue
		}
		one, err := start(ctx, name)
		if one != nil {
			b.builds = append(b.builds, one)
		}
		if err != nil {
			return err
		}
	}
	for range b.rounds {
		rate, err := syncRate(b.builds[0].d.Dir, b.each/2)
		if err != nil {
			return err
		}
		b.syncs = append(b.syncs, rate)
		for _, clients := range b.clients {
			for _, one := range b.builds {
				if err := one.round(ctx, clients, b.each); err != nil {
					return err
				}
			}
		}
	}
	b.print(before)
	return nil
}

func start(ctx context.Context, binary string) (*build, error) {
	d, err := daemon.Start(binary)
	if err != nil {
		return nil, err
	}
	one := &build{name: binary, d: d, rates: map[int][]float64{}, waits: map[int][]time.Duration{}}
	if one.c, err = d.Login(ctx); err != nil {
		return one, err
	}
	one.space, err = one.c.GUID(ctx, "/v3/spaces")
	return one, err
}

// round lets the clients create apps until its time is over.
func (o *build) round(ctx context.Context, clients int, each time.Duration) error {
	var mu sync.Mutex
	var waits []time.Duration
	var failed error
	var running sync.WaitGroup
	began := time.Now()
	for range clients {
		running.Go(func() {
			for time.Since(began) < each {
				asked := time.Now()
				err := o.makeApp(ctx)
				mu.Lock()
				waits = append(waits, time.Since(asked))
				if err != nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	o.rates[clients] = append(o.rates[clients], float64(len(waits))/time.Since(began).Seconds())
	o.waits[clients] = append(o.waits[clients], waits...)
	return failed
}

func (o *build) makeApp(ctx context.Context) error {
	type doc = map[string]any
	body := doc{"name": fmt.Sprintf("write-%d", o.apps.Add(1)), "relationships": doc{"space": doc{"data": doc{"guid": o.space}}}}
	return o.c.Call(ctx, http.MethodPost, "/v3/apps", body, nil)
}

// syncRate is how often in a second a page is written to a file and synced.
func syncRate(dir string, each time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "sync-rate"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page, n, began := make([]byte, 4096), 0, time.Now()
	for ; time.Since(began) < each; n++ {
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

func (b *bench) print(before string) {
	syncs := report.Median(b.syncs)
	fmt.Printf("Apps made by the API, median of %d × %s by turns; the disk does %s fsyncs of a page in a second:\n\n", b.rounds, b.each, report.Figure(syncs, 0))
	t := report.NewTable("build", "clients", "writes/s", "× fsyncs", "× before", "p50, ms", "p99, ms")
	for _, clients := range b.clients {
		for _, one := range b.builds {
			rate, name, ratio := report.Median(one.rates[clients]), "cupola", "–"
			if before != "" {
				ratio = report.Figure(rate/report.Median(b.builds[0].rates[clients]), 2)
			}
			if before != "" && one == b.builds[0] {
				name = "before"
			}
			t.Add(name, fmt.Sprint(clients), report.Figure(rate, 0), report.Figure(rate/syncs, 2), ratio,
				report.Figure(report.MS(report.Median(one.waits[clients])), 1), report.Figure(report.MS(report.Quantile(one.waits[clients], 0.99)), 1))
		}
	}
	t.Print(os.Stdout)
}
