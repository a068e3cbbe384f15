package main

import "fmt"

// haproxyConfig is haproxy set up as nginx is by proxyConfig.
func haproxyConfig(addr, backend, certificate string) string {
	secure := ""
	if certificate != "" {
		secure = fmt.Sprintf(" ssl crt %s/both.pem ssl-min-ver TLSv1.3 alpn h2,http/1.1", certificate)
	}
	return fmt.Sprintf(`global
  nbthread %d
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 60s
frontend clients
  bind %s%s
  option forwardfor
  default_backend instances
backend instances
  http-reuse always
  server instance %s
`, workers, addr, secure, backend)
}
