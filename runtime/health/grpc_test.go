package health

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// grpcServer answers for the services that it knows, by their states.
func grpcServer(t *testing.T, states map[string]byte) netip.AddrPort {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frame, err := io.ReadAll(r.Body)
		if err != nil || len(frame) < 5 || int(binary.BigEndian.Uint32(frame[1:5])) != len(frame)-5 || r.Header.Get("Content-Type") != "application/grpc" || r.ProtoMajor != 2 {
			t.Errorf("got %q, %v, %v; want a message of gRPC's", frame, r.Header, err)
			return
		}
		service := ""
		if len(frame) > 7 {
			service = string(frame[7:])
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		state, known := states[service]
		switch {
		case r.URL.Path != "/grpc.health.v1.Health/Check":
			w.Header().Set("Grpc-Status", "12")
		case !known:
			w.Header().Set("Grpc-Status", "5")
		default:
			_, _ = w.Write([]byte{0, 0, 0, 0, 2, 8, state})
			w.Header().Set("Grpc-Status", "0")
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

func TestProbeGRPC(t *testing.T) {
	at := grpcServer(t, map[string]byte{"": 1, "db": 2, "new": 9})
	p := prober{address: at.Addr(), dial: (&net.Dialer{}).DialContext}
	for service, want := range map[string]string{
		"": "", "db": `^service unhealthy \(responded with "NOT_SERVING"\)$`, "new": `^service unhealthy \(responded with "9"\)$`,
		"none": "^error: health rpc failed: HTTP status 200, code 5: $",
	} {
		check(t, p.probe(t.Context(), lrp.Check{Type: lrp.CheckGRPC, Port: at.Port(), Service: service, InvocationTimeout: time.Minute}), want)
	}
	plain := app(t)
	check(t, prober{address: plain.Addr(), dial: p.dial}.probe(t.Context(), lrp.Check{Type: lrp.CheckGRPC, Port: plain.Port(), InvocationTimeout: time.Second}), "^(error: failed to connect service|timeout: )")
}

func FuzzServingOf(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		if status, err := servingOf(frame); err != nil && status == 1 {
			t.Error("an answer that is none says that it serves")
		}
	})
}

func TestProbeHTTPAsKubernetes(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "me.example.com" || r.Header.Get("User-Agent") != "mine" || len(r.Header.Values("X-Twice")) != 2 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	p := prober{address: at.Addr(), dial: (&net.Dialer{}).DialContext}
	c := lrp.Check{Type: lrp.CheckHTTP, Port: at.Port(), Path: "/", TLS: true, Host: "me.example.com", InvocationTimeout: time.Minute,
		Headers: []lrp.Header{{Name: "user-agent", Value: "mine"}, {Name: "x-twice", Value: "1"}, {Name: "X-Twice", Value: "2"}}}
	check(t, p.probe(t.Context(), c), "")
	c.Headers = append(c.Headers, lrp.Header{Name: "host", Value: "other.example.com"})
	check(t, p.probe(t.Context(), c), "received status code 418")
}
