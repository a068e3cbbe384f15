package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/bench/daemon"
	"cupola/bench/report"
	"cupola/runtime/fault"
	"cupola/server/bbs/bbspb"
)

// client speaks to the BBS API with what `cupola credentials --bbs` tells.
type client struct {
	url  string
	http *http.Client
}

var exportLine = regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`)

func newClient(ctx context.Context, d *daemon.Daemon) (*client, error) {
	out, err := exec.CommandContext(ctx, d.Binary, "credentials", "--bbs", "--data-dir", d.Dir).Output()
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, m := range exportLine.FindAllStringSubmatch(string(out), -1) {
		env[m[1]] = m[2]
	}
	pair, err := tls.LoadX509KeyPair(env["CLIENT_CERT_FILE"], env["CLIENT_KEY_FILE"])
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(env["CA_CERT_FILE"])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &client{env["BBS_URL"], &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}}}}, nil
}

// call makes a call and decodes its answer.
func (c *client) call(ctx context.Context, path string, req, into proto.Message) error {
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	if err := proto.Unmarshal(answer, into); err != nil {
		return err
	}
	if e, ok := into.(interface{ GetError() *bbspb.Error }); ok && e.GetError() != nil {
		return fmt.Errorf("%s: %s", path, e.GetError().Message)
	}
	return nil
}

// calls makes r.count calls by r.clients at once.
func (r *rounds) calls(ctx context.Context, what string, diegos float64, call func(i int) (string, proto.Message)) error {
	times := make([]time.Duration, r.count)
	group, ctx := fault.NewGroup(ctx)
	began := time.Now()
	for n := range r.clients {
		group.Go(func() error {
			for i := n; i < r.count; i += r.clients {
				path, req := call(i)
				var into proto.Message = &bbspb.LifecycleResponse{}
				if path == "/v1/ping" {
					into = &bbspb.PingResponse{}
				}
				start := time.Now()
				if err := r.call(ctx, path, req, into); err != nil {
					return err
				}
				times[i] = time.Since(start)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	rate := float64(r.count) / time.Since(began).Seconds()
	if r.ping == 0 {
		r.ping, r.pingTime = rate, report.Quantile(times, 0.5)
	}
	r.table.Add(what, fmt.Sprintf("%.0f", rate), ms(report.Quantile(times, 0.5)), ms(report.Quantile(times, 0.95)),
		fmt.Sprintf("%.2f", rate/r.ping), fmt.Sprintf("%.2f", diegos/diego.ping))
	return nil
}

// awaitPlacementErrors waits until every instance has a placement error: no cell has room for it.
func (r *rounds) awaitPlacementErrors(ctx context.Context) error {
	for {
		all, denied := &bbspb.ActualLRPsResponse{}, 0
		if err := r.call(ctx, "/v1/actual_lrps/list", &bbspb.ActualLRPsRequest{}, all); err != nil {
			return err
		}
		for _, a := range all.ActualLrps {
			if a.PlacementError != "" {
				denied++
			}
		}
		pause := 100 * time.Millisecond
		if denied == r.count {
			pause = 2 * time.Second // what was written is also tidied up
		}
		select {
		case <-time.After(pause):
			if denied == r.count {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list gets a list of r.count twenty times. Its ratio is how many pings take as
// long: Diego's took 0.5 ms in the median.
func (r *rounds) list(ctx context.Context, what string, diegos float64, path string, into proto.Message) error {
	const diegoPing = 0.5
	var times []time.Duration
	for range 20 {
		start := time.Now()
		if err := r.call(ctx, path, &bbspb.Empty{}, into); err != nil {
			return err
		}
		times = append(times, time.Since(start))
	}
	p50 := report.Quantile(times, 0.5)
	r.table.Add(what, "", ms(p50), ms(report.Quantile(times, 0.95)), fmt.Sprintf("%.0f pings", float64(p50)/float64(r.pingTime)), fmt.Sprintf("%.0f pings", diegos/diegoPing))
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
