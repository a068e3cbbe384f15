package config

import (
	"net/netip"
	"testing"
)

func TestIsListener(t *testing.T) {
	for _, c := range []struct {
		config Config
		at     string
		want   bool
	}{
		{Config{HTTP: "0.0.0.0:80", HTTPS: "off", TCP: "off"}, "192.0.2.1:80", true},
		{Config{HTTP: ":80", HTTPS: "off", TCP: "off"}, "192.0.2.1:80", true},
		{Config{HTTP: "[::]:80", HTTPS: "off", TCP: "off"}, "192.0.2.1:80", true},
		{Config{HTTP: "192.0.2.1:80", HTTPS: "192.0.2.1:443", TCP: "off"}, "192.0.2.1:443", true},
		{Config{HTTP: "127.0.0.1:80", HTTPS: "192.0.2.1:443", TCP: "off"}, "192.0.2.1:80", false},
		{Config{HTTP: "0.0.0.0:80", HTTPS: "off", TCP: "off"}, "192.0.2.1:9100", false},
		{Config{HTTP: "127.0.0.1:80", HTTPS: "off", TCP: "0.0.0.0:1024-1123"}, "192.0.2.1:1100", true},
		{Config{HTTP: "127.0.0.1:80", HTTPS: "off", TCP: "127.0.0.1:1024-1123"}, "192.0.2.1:1100", false},
		{Config{HTTP: "127.0.0.1:80", HTTPS: "off", TCP: "off", SegmentRouters: []string{"red=0.0.0.0:81"}}, "192.0.2.1:81", true},
	} {
		if got := c.config.IsListener(netip.MustParseAddrPort(c.at)); got != c.want {
			t.Errorf("%s of %+v: got %t; want %t", c.at, c.config, got, c.want)
		}
	}
}
