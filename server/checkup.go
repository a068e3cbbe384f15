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
	https := c.HTTPS
	_, runs := doctor.DaemonOf(c.DataDir)
	if runs {
		c.HTTP = cmp.Or(c.HTTP, apiAddress(c.DataDir))
	}
	if err := c.Validate(); err != nil {
		return []doctor.Result{{Name: "flags", Level: doctor.Fail, Detail: err.Error(), Fix: "cupola serve --help"}}
	}
	if !runs {
		https = c.HTTPS // the default, where none was given
	}
	return doctor.Check(ctx, doctor.Options{DataDir: c.DataDir, HTTP: c.HTTP, HTTPS: https, Domain: c.Domain,
		Subnet: func() (netip.Prefix, []network.Use, error) { return datadir.PickSubnet(c.DataDir) }, LinkPrefix: datadir.OwnerOf(c.DataDir).LinkPrefix,
		IDMap: datadir.IDMap(), Tools: contract.Tools(), Engine: c.Engine, Elsewhere: c.None, Clusters: clusterChecks(c), NoLaunch: container.CheckLaunch(),
		Trial: func(ctx context.Context, dir string) (map[string]error, error) {
			return trial.Run(ctx, dir, container.Kind(c.Engine))
		}})
}

// apiAddress is the address of --http that a data directory names; "" for none.
func apiAddress(dataDir string) string {
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
