// Command kube is a Kubernetes control plane and a kubelet in one program, for tests: what its
// parts share is compiled and linked once. Its first argument is the part.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	node "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = `usage: kube etcd DIR CLIENT-URL PEER-URL
       kube apiserver FLAG…             kube-apiserver's own
       kube scheduler FLAG…             kube-scheduler's own
       kube controllers KUBECONFIG CA-FILE
       kube kubelet FLAG…               kubelet's own
       kube pretend KUBECONFIG`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s", usage)
	}
	part, args := args[0], args[1:]
	switch {
	case part == "etcd" && len(args) == 3:
		return etcd(ctx, args[0], args[1], args[2])
	case part == "apiserver":
		return command(apiserver.NewAPIServerCommand(), args)
	case part == "scheduler":
		return command(scheduler.NewSchedulerCommand(), args)
	case part == "controllers" && len(args) == 2:
		return controllers(ctx, args[0], args[1])
	case part == "kubelet":
		return command(node.NewKubeletCommand(ctx), args)
	case part == "pretend" && len(args) == 1:
		return pretend(ctx, args[0])
	}
	return fmt.Errorf("%s", usage)
}

func command(c *cobra.Command, args []string) error {
	c.SetArgs(args)
	if code := cli.Run(c); code != 0 {
		return fmt.Errorf("%s ended with %d", c.Name(), code)
	}
	return nil
}

// etcd is the control plane's store. It writes nothing through to the disk.
func etcd(ctx context.Context, dir, client, peer string) error {
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync, c.LogLevel = dir, true, "error"
	for _, at := range []struct {
		of   string
		urls []*[]url.URL
	}{{client, []*[]url.URL{&c.ListenClientUrls, &c.AdvertiseClientUrls}}, {peer, []*[]url.URL{&c.ListenPeerUrls, &c.AdvertisePeerUrls}}} {
		u, err := url.Parse(at.of)
		if err != nil {
			return err
		}
		for _, urls := range at.urls {
			*urls = []url.URL{*u}
		}
	}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}
