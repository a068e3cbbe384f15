package podcell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cupola/runtime/durable"
	"cupola/server/cells"
)

// clusterFile has, in the directory of a cell, which cluster it is.
const clusterFile = "cluster.json"

// remember notes the cluster of a cell: a later daemon that is not given it still finds its pods.
func remember(dir string, c cells.Cluster) error {
	if c.Kubeconfig != cells.InCluster {
		var err error
		if c.Kubeconfig, err = filepath.Abs(c.Kubeconfig); err != nil {
			return err
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(dir, clusterFile), text, 0o600)
}

// Left are the clusters that an earlier daemon was given and this one is not: what runs there goes on until it is moved or stopped.
// One whose kubeconfig is gone is given up.
func Left(dir string, given []cells.Cluster, log *slog.Logger) (left []cells.Cluster, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", clusterFile))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		c := cells.Cluster{}
		if readErr == nil {
			readErr = json.Unmarshal(text, &c)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("read %s: %w", file, readErr))
			continue
		}
		if slices.ContainsFunc(given, func(g cells.Cluster) bool { return g.Name == c.Name }) {
			continue
		}
		if isGone(c) {
			log.Warn("cluster is given up, since its kubeconfig is gone: pods that still run there are left", "cell", c.Name, "kubeconfig", c.Kubeconfig,
				"remedy", "kubectl delete pod,secret,networkpolicy -l cupola.dev/cell="+c.Name)
			err = errors.Join(err, os.Remove(file))
			continue
		}
		c.Leaving = true
		left = append(left, c)
	}
	return left, err
}

// isGone reports whether a cluster cannot be reached any longer, because the user has removed its kubeconfig, or because this process is not a pod.
func isGone(c cells.Cluster) bool {
	if c.Kubeconfig == cells.InCluster {
		return os.Getenv("KUBERNETES_SERVICE_HOST") == ""
	}
	_, err := os.Stat(c.Kubeconfig)
	return errors.Is(err, fs.ErrNotExist)
}

// forget notes that nothing is left on a cluster that the daemon is not given any longer.
func (c *Cell) forget() {
	file := filepath.Join(c.cfg.Dir, clusterFile)
	if _, err := os.Stat(file); !c.cfg.Presence.Leaving || err != nil || !c.knows() || len(c.Containers()) > 0 || !c.policies.none() || !c.agent.none() {
		return
	}
	if err := os.Remove(file); err != nil {
		c.cfg.Log.Warn("cluster was not forgotten", "cell", c.pods.Cell, "err", err)
		return
	}
	c.cfg.Log.Info("nothing runs any longer on the cluster that --kubernetes does not name", "cell", c.pods.Cell)
}
