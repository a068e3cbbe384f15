package kubetest

import (
	"net"
	"net/netip"
	"strconv"

	"cupola/server/kube"
	"cupola/test/loopback"
)

// Services gives all Services that there are now their addresses, as kube-proxy does: connections of this machine and of pods
// lead to one of their pods. The Service of the API server is one of them.
func (n *Node) Services() {
	n.t.Helper()
	for _, s := range n.In("").List("v1", "Service") {
		ip, err := netip.ParseAddr(s.Text("spec", "clusterIP"))
		if err != nil {
			continue // it has none
		}
		if out, err := n.ip("addr", "replace", ip.String()+"/32", "dev", n.linkName()); err != nil {
			n.t.Fatal(out)
		}
		for _, port := range s.Items("spec", "ports") {
			loopback.Forward(n.t, net.JoinHostPort(ip.String(), strconv.FormatInt(port.Number("port"), 10)), func() string {
				return n.endpoint(s, port.Text("name"))
			})
		}
	}
}

// Service is the address of a Service of the namespace, or "".
func (n *Node) Service(name string) string {
	for _, s := range n.List("v1", "Service") {
		if s.Name() == name {
			return s.Text("spec", "clusterIP")
		}
	}
	return ""
}

// endpoint is where a port of a Service leads; "" while it has no pod that is ready.
func (n *Node) endpoint(service kube.Object, port string) string {
	for _, e := range n.In(service.Namespace()).List("discovery.k8s.io/v1", "EndpointSlice") {
		if e.Label("kubernetes.io/service-name") != service.Name() {
			continue
		}
		for _, of := range e.Items("endpoints") {
			addresses, _ := of["addresses"].([]any)
			if ready, _ := of.Map("conditions")["ready"].(bool); !ready || len(addresses) == 0 {
				continue
			}
			for _, p := range e.Items("ports") {
				if p.Text("name") == port {
					return net.JoinHostPort(addresses[0].(string), strconv.FormatInt(p.Number("port"), 10))
				}
			}
		}
	}
	return ""
}
