package kubetest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"cupola/server/kube"
)

// nameServer knows the addresses of a namespace's headless Services, by their names.
type nameServer struct {
	slices dynamic.ResourceInterface
	conn   net.PacketConn

	mu    sync.Mutex
	names map[string][]netip.Addr
}

// NameServer answers the pods' queries for the names of the namespace's headless Services, as a cluster's DNS does: by the addresses of
// their pods. Pods know no domain: they ask for the names alone.
func (n *Node) NameServer() {
	n.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig)
	if err != nil {
		n.t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		n.t.Fatal(err)
	}
	s := &nameServer{slices: client.Resource(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}).Namespace(n.within)}
	if s.conn, err = (&net.ListenConfig{}).ListenPacket(n.t.Context(), "udp", net.JoinHostPort(n.Host(), "53")); err != nil {
		n.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { s.refresh(n.t.Context()) })
	running.Go(s.serve)
	n.t.Cleanup(func() {
		_ = s.conn.Close()
		running.Wait()
	})
}

// refresh reads the addresses again and again, until ctx ends.
func (s *nameServer) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		if list, err := s.slices.List(ctx, metav1.ListOptions{}); err == nil {
			names := map[string][]netip.Addr{}
			for _, item := range list.Items {
				slice := kube.Object(item.Object)
				name := slice.Label("kubernetes.io/service-name")
				names[name] = append(names[name], addressesOf(slice)...)
			}
			s.mu.Lock()
			s.names = names
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// addressesOf are those of an EndpointSlice's pods that are ready, or count as ready because the Service publishes all.
func addressesOf(slice kube.Object) (all []netip.Addr) {
	for _, of := range slice.Items("endpoints") {
		addresses, _ := of["addresses"].([]any)
		if ready, _ := of.Map("conditions")["ready"].(bool); !ready {
			continue
		}
		for _, a := range addresses {
			text, _ := a.(string)
			if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
				all = append(all, ip)
			}
		}
	}
	return all
}

// serve answers until the connection is closed.
func (s *nameServer) serve() {
	query := make([]byte, 1<<9)
	for {
		size, from, err := s.conn.ReadFrom(query)
		if err != nil {
			return
		}
		if answer := s.answer(query[:size]); answer != nil {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

// answer is that to a query; nil to one that cannot be read.
func (s *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	s.mu.Lock()
	addresses := s.names[strings.TrimSuffix(q.Name.String(), ".")]
	s.mu.Unlock()
	m.Response, m.Additionals = true, nil
	if len(addresses) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		if q.Type == dnsmessage.TypeA {
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
