package cells

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/runtime/pattern"
)

// Cluster is a namespace of a Kubernetes cluster that is a cell.
type Cluster struct {
	Name       string // the cell's, which is a tag of it as well
	Kubeconfig string // a file, or InCluster
	Context    string // "" is the current one
	Namespace  string // "" is the context's
	Tag        string // the tag that it requires; "" is Name
	Zone       string // "" is DefaultZone
	Tunnel     string // how its pods are reached; "" is TunnelAuto
	Leaving    bool   `json:"-"` // --kubernetes does not name it any longer
	Open       bool   `json:"-"` // it requires no tag
}

// InCluster stands for a kubeconfig where the daemon is a pod of the cluster: it has the rights of its service account.
const InCluster = "in-cluster"

// How the router reaches the pods of a cluster.
const (
	TunnelAuto   = "auto"   // at their addresses where these answer, else by the tunnel
	TunnelAlways = "always" // by the tunnel
	TunnelNever  = "never"  // at their addresses
)

// clusterHelp is the form of --kubernetes.
const clusterHelp = "give NAME=KUBECONFIG, or NAME=in-cluster in a pod, and after commas context=, namespace=, tag=, zone= and tunnel="

// namePattern is that of names of cells that are labels of Kubernetes, too.
var namePattern = pattern.Lazy(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// parseCluster reads a value of --kubernetes.
func parseCluster(s string) (Cluster, error) {
	fields := strings.Split(s, ",")
	var c Cluster
	c.Name, c.Kubeconfig, _ = strings.Cut(fields[0], "=")
	switch {
	case !namePattern().MatchString(c.Name):
		return c, fmt.Errorf("invalid --kubernetes %q: the name may have up to 63 letters, digits, '.', '_' and '-', and begins and ends with a letter or digit; %s", s, clusterHelp)
	case c.Kubeconfig == "":
		return c, fmt.Errorf("invalid --kubernetes %q: there is no kubeconfig; %s", s, clusterHelp)
	}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		to := map[string]*string{"context": &c.Context, "namespace": &c.Namespace, "tag": &c.Tag, "zone": &c.Zone, "tunnel": &c.Tunnel}[key]
		if to == nil || value == "" || *to != "" {
			return c, fmt.Errorf("invalid --kubernetes %q: invalid %q; %s", s, f, clusterHelp)
		}
		*to = value
	}
	if c.Kubeconfig == InCluster && c.Context != "" {
		return c, fmt.Errorf("invalid --kubernetes %q: in-cluster has no contexts: leave context= out", s)
	}
	if !slices.Contains([]string{"", TunnelAuto, TunnelAlways, TunnelNever}, c.Tunnel) {
		return c, fmt.Errorf("invalid --kubernetes %q: invalid tunnel %q: give auto, always or never", s, c.Tunnel)
	}
	if c.Tag != "" && !cellPattern().MatchString(c.Tag) {
		return c, fmt.Errorf("invalid --kubernetes %q: the tag may have up to 63 letters, digits, '.', '_' and '-'", s)
	}
	if c.Zone == "" {
		c.Zone = DefaultZone
	}
	if !cellPattern().MatchString(c.Zone) {
		return c, fmt.Errorf("invalid --kubernetes %q: the zone may have up to 63 letters, digits, '.', '_' and '-'", s)
	}
	return c, nil
}

// Presence is the cell of a cluster, without what its nodes have. Only what requires its tag runs on it, unless it is open.
func (c Cluster) Presence() lrp.Cell {
	tags := []string{strings.ToLower(c.Name)}
	if tag := strings.ToLower(c.Tag); tag != "" && tag != tags[0] {
		tags = append(tags, tag)
	}
	required := tags[len(tags)-1:]
	if c.Open {
		required = nil
	}
	return lrp.Cell{ID: c.Name, Tags: tags, RequiredTags: required, Zone: c.Zone, RootFSProviders: []string{string(reference.SchemeDocker)}, NoStaging: true, Leaving: c.Leaving}
}

// checkRegistry refuses an address that nodes could not use.
func (c *Config) checkRegistry() error {
	if c.KubernetesRegistry == "" {
		return nil
	}
	if len(c.Kubernetes) == 0 {
		return fmt.Errorf("invalid --kubernetes-registry %q: give --kubernetes, too", c.KubernetesRegistry)
	}
	host, port, err := net.SplitHostPort(c.KubernetesRegistry)
	ip := net.ParseIP(host)
	if err != nil || !validPort(port) || host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("invalid --kubernetes-registry %q: give an address that the nodes reach, with a port, like 192.0.2.1:5443; where to listen is --kubernetes-registry-listen", c.KubernetesRegistry)
	}
	return nil
}

// checkRegistryListen refuses what cannot be listened at.
func (c *Config) checkRegistryListen() error {
	if c.RegistryListen == "" {
		return nil
	}
	if c.KubernetesRegistry == "" {
		return fmt.Errorf("invalid --kubernetes-registry-listen %q: give --kubernetes-registry, too: the address at which nodes and pods reach it", c.RegistryListen)
	}
	if _, port, err := net.SplitHostPort(c.RegistryListen); err != nil || !validPort(port) {
		return fmt.Errorf("invalid --kubernetes-registry-listen %q: give an address of this machine with a port, like 0.0.0.0:5443", c.RegistryListen)
	}
	return nil
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// checkClusters reads the clusters. No other cell has the name of one.
func (c *Config) checkClusters() error {
	var faults []error
	taken := map[string]bool{}
	for _, cell := range c.Cells {
		taken[strings.ToLower(cell.Name)] = true
	}
	if len(c.Cells) == 0 && !c.None {
		taken[cellID] = true
	}
	c.Clusters = nil
	for _, s := range c.Kubernetes {
		cluster, err := parseCluster(s)
		cluster.Open = c.None
		if err == nil && taken[strings.ToLower(cluster.Name)] {
			err = fmt.Errorf("invalid --kubernetes %q: another cell is named %s; give each its own name", s, cluster.Name)
		}
		if err == nil && cluster.Tunnel == TunnelAlways && c.KubernetesRegistry == "" {
			err = fmt.Errorf("invalid --kubernetes %q: tunnel=always needs --kubernetes-registry, from which the node pulls the agent of the tunnel", s)
		}
		taken[strings.ToLower(cluster.Name)] = true
		faults = append(faults, err)
		c.Clusters = append(c.Clusters, cluster)
	}
	return errors.Join(faults...)
}
