package podcell

import (
	"cupola/server/cells"
	"cupola/server/kube/apply"
)

// Open makes a Cell of a cluster. It asks the cluster nothing yet.
func Open(of cells.Cluster, cfg Config) (*Cell, error) {
	log := cfg.Log
	to := apply.Config{InCluster: of.Kubeconfig == cells.InCluster, Context: of.Context, Namespace: of.Namespace, Warn: func(text string) {
		log.Debug("cluster warns", "cell", of.Name, "text", text)
	}}
	if !to.InCluster {
		to.Kubeconfig = of.Kubeconfig
	}
	cluster, err := apply.Open(to)
	if err != nil {
		return nil, err
	}
	cfg.Cluster, cfg.Presence = cluster, of.Presence()
	c, err := New(cfg)
	if err == nil && !of.Leaving {
		err = remember(cfg.Dir, of)
	}
	return c, err
}
