package config

import (
	"strings"
	"testing"
)

func TestInstanceTLSFlags(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		fault  string // "": none
	}{
		"default":           {Config{}, ""},
		"off":               {Config{InstanceTLS: "off"}, ""},
		"mutual":            {Config{InstanceTLS: "mutual", BackendTLS: true, InstanceTLSCAs: []string{"ca"}, InstanceTLSNames: []string{"a"}}, ""},
		"another mode":      {Config{InstanceTLS: "yes"}, `invalid --instance-tls "yes": give one of on, off, mutual`},
		"nothing to speak":  {Config{InstanceTLS: "off", BackendTLS: true}, "invalid --backend-tls: it needs --instance-tls on or mutual"},
		"CAs of no use":     {Config{InstanceTLSCAs: []string{"ca"}}, "they need --instance-tls mutual"},
		"names without CAs": {Config{InstanceTLS: "mutual", InstanceTLSNames: []string{"a"}}, "invalid --instance-tls-names: give --instance-tls-ca, too"},
		"segment":           {Config{SegmentHTTPS: []string{"red"}}, `invalid --segment-router-https "red"`},
	} {
		err := c.config.Validate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: got %v; want %q", name, err, c.fault)
		}
	}
	both := Config{SegmentRouters: []string{"red=127.0.0.1:1"}, SegmentHTTPS: []string{"red=127.0.0.1:2"}}
	if got := both.SegmentListeners(); len(got) != 2 || got[0].TLS || !got[1].TLS || got[1].Address != "127.0.0.1:2" {
		t.Errorf("got %+v", got)
	}
}
