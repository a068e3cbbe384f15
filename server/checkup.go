package server

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/network"
	"cupola/server/admin/trial"
	"cupola/server/config"
	"cupola/server/datadir"
	"cupola/server/doctor"
	"cupola/server/kube/podcell"
)

// Checkup checks the machine for a daemon with this configuration. It needs no data
// directory and leaves nothing behind.
func Checkup(ctx context.Context, c config.Config) []doctor.Result {
	if c.HTTP == defaultHTTP {
		c.HTTP = cmp.Or(runningHTTP(c.DataDir), c.HTTP)
	}
	if err := c.Validate(); err != nil {
		return []doctor.Result{{Name: "flags", Level: doctor.Fail, Detail: err.Error(), Fix: "cupola serve --help"}}
	}
	return doctor.Check(ctx, doctor.Options{DataDir: c.DataDir, HTTP: c.HTTP, HTTPS: c.HTTPS, Domain: c.Domain,
		Subnet: func() (netip.Prefix, []network.Use, error) { return datadir.PickSubnet(c.DataDir) }, LinkPrefix: datadir.OwnerOf(c.DataDir).LinkPrefix,
		IDMap: datadir.IDMap(), Tools: contract.Tools(), Engine: c.Engine, Elsewhere: c.None, Clusters: clusterChecks(c), NoLaunch: container.CheckLaunch(),
		Trial: func(ctx context.Context, dir string) (map[string]error, error) {
			return trial.Run(ctx, dir, container.Kind(c.Engine))
		}})
}

// defaultHTTP is the default of --http.
const defaultHTTP = "127.0.0.1:8080"

// runningHTTP is the address of --http of the daemon that runs on a data directory; ""
// for none.
func runningHTTP(dataDir string) string {
	if _, runs := doctor.DaemonOf(dataDir); !runs {
		return ""
	}
	api, err := datadir.APIOf(dataDir)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(api, "http://")
}

// clusterChecks are the checks of the clusters of --kubernetes.
func clusterChecks(c config.Config) map[string]func(context.Context) (mend string, err error) {
	all := map[string]func(context.Context) (string, error){}
	for _, of := range c.Clusters {
		all[of.Name] = func(ctx context.Context) (string, error) { return podcell.Check(ctx, of, c.Log) }
	}
	return all
}
