package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"

	"google.golang.org/protobuf/encoding/protowire"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// The states of grpc.health.v1.
var servingStatus = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

// grpc asks for grpc.health.v1.Health/Check without TLS, as the kubelet does: one
// message each way over HTTP/2. The errors are the kubelet's.
func (p prober) grpc(ctx context.Context, c lrp.Check) error {
	address := netip.AddrPortFrom(p.address, c.Port).String()
	message := []byte{}
	if c.Service != "" {
		message = protowire.AppendString(protowire.AppendTag(message, 1, protowire.BytesType), c.Service)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/grpc.health.v1.Health/Check", bytes.NewReader(append(frame, message...)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	status, err := p.served(req)
	switch {
	case err != nil && timedOut(err):
		return fmt.Errorf("timeout: failed to connect service %q within %s", address, c.InvocationTimeout)
	case err != nil:
		return err
	case status != 1:
		name := fmt.Sprint(status)
		if status < uint64(len(servingStatus)) {
			name = servingStatus[status]
		}
		return fmt.Errorf("service unhealthy (responded with %q)", name)
	}
	return nil
}

// served is the status that a server answers with.
func (p prober) served(req *http.Request) (uint64, error) {
	transport := &http.Transport{DialContext: fault.Dial("health", p.dialInside), DisableKeepAlives: true, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, fmt.Errorf("error: failed to connect service %q: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	frame, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return 0, fmt.Errorf("error: health rpc failed: %w", err)
	}
	code, text := resp.Trailer.Get("Grpc-Status"), resp.Trailer.Get("Grpc-Message")
	if code == "" { // an answer without a message has them in front
		code, text = resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")
	}
	const unimplemented = "12"
	switch {
	case code == unimplemented:
		return 0, errors.New("error: this server does not implement the grpc health protocol (grpc.health.v1.Health)")
	case resp.StatusCode != http.StatusOK || code != "0":
		return 0, fmt.Errorf("error: health rpc failed: HTTP status %d, code %s: %s", resp.StatusCode, code, text)
	}
	return servingOf(frame)
}

// servingOf reads the status of a HealthCheckResponse; 0 is what is not said.
func servingOf(frame []byte) (status uint64, err error) {
	const prefix = 5 // whether it is compressed, and its length
	if len(frame) < prefix || frame[0] != 0 {
		return 0, errors.New("error: health rpc failed: the answer is not a message")
	}
	for b := frame[prefix:]; len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, fmt.Errorf("error: health rpc failed: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return 0, fmt.Errorf("error: health rpc failed: %w", protowire.ParseError(n))
		}
		if number == 1 && kind == protowire.VarintType {
			status, _ = protowire.ConsumeVarint(b)
		}
		b = b[n:]
	}
	return status, nil
}
