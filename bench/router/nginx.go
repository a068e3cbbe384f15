package main

import "fmt"

const commonConfig = `daemon off;
worker_processes %d;
pid nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path tmp1; proxy_temp_path tmp2; fastcgi_temp_path tmp3; uwsgi_temp_path tmp4; scgi_temp_path tmp5;
  keepalive_requests 100000000;
  %s
}
`

const workers = 2

func backendConfig(addr string) string {
	return fmt.Sprintf(commonConfig, workers, fmt.Sprintf(`server { listen %s; location / { return 200 "hello, world\n"; } }`, addr))
}

// proxyConfig is nginx as one would set it up: connections to the backend are
// kept, X-Forwarded-For is added.
func proxyConfig(addr, backend string) string { return forwardConfig(addr, backend, "") }

// secureConfig is the same with TLS.
func secureConfig(addr, backend, dir string) string {
	return forwardConfig(addr+" ssl", backend, fmt.Sprintf("ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; ssl_protocols TLSv1.3;", dir))
}

func forwardConfig(listen, backend, more string) string {
	return fmt.Sprintf(commonConfig, workers, fmt.Sprintf(`
  upstream backend { server %s; keepalive 128; keepalive_requests 100000000; }
  server {
    listen %s;
    %s
    location / {
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }`, backend, listen, more))
}
