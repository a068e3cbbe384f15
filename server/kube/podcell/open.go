package podcell

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"cupola/runtime/lrp"
	"cupola/server/cells"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// Open makes the cell of a cluster. It makes no request: Run does.
func Open(of cells.Cluster, cfg Config) (*Cell, error) {
	cluster, err := connect(of, cfg.Log)
	if err != nil {
		return nil, err
	}
	cfg.Cluster, cfg.Presence, cfg.Tunnel = cluster, of.Presence(), cmp.Or(of.Tunnel, cells.TunnelAuto)
	c, err := New(cfg)
	if err == nil && !of.Leaving {
		err = remember(cfg.Dir, of)
	}
	return c, err
}

// connect finds the cluster, without a request to it.
func connect(of cells.Cluster, log *slog.Logger) (*apply.Cluster, error) {
	to := apply.Config{InCluster: of.Kubeconfig == cells.InCluster, Context: of.Context, Namespace: of.Namespace, Warn: func(text string) {
		log.Debug("cluster warns", "cell", of.Name, "text", text)
	}}
	if !to.InCluster {
		to.Kubeconfig = of.Kubeconfig
	}
	return apply.Open(to)
}

// Check does on a cluster what its cell will do, and leaves nothing there: it lists pods, Secrets and network
// policies, and asks the cluster whether it would accept the pod of an instance, and its Secret. An error comes with a mend.
func Check(ctx context.Context, of cells.Cluster, log *slog.Logger) (mend string, err error) {
	if err := try(ctx, of, log); err != nil {
		return mendOf(err), err
	}
	return "", nil
}

func try(ctx context.Context, of cells.Cluster, log *slog.Logger) error {
	cluster, err := connect(of, log)
	if err != nil {
		return err
	}
	o := kube.InstanceOptions{Cell: of.Name, Owner: "doctor"}
	for _, kind := range []string{"Pod", "Secret", "NetworkPolicy"} {
		if _, err := cluster.Names(ctx, kind, o.Selector()); err != nil {
			return fmt.Errorf("list objects of kind %s: %w", kind, plain(err))
		}
	}
	made, err := kube.Instance(lrp.Container{GUID: "cupola-doctor", Kind: lrp.KindInstance, RunInfo: lrp.RunInfo{RootFS: "docker://cupola/doctor:1", MemoryMB: 64,
		Action: lrp.Run{Path: "/app"}.Action(), Env: []lrp.EnvVar{{Name: "A", Value: "b"}}, LogRateLimitByte: -1}}, o)
	if err != nil {
		return err
	}
	for _, object := range append(made.Secrets, made.Pod) {
		if err := cluster.Try(ctx, object); err != nil {
			return fmt.Errorf("create objects of kind %s: %w", object.Kind(), plain(err))
		}
	}
	return nil
}
