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

// backendConfig is a server of a small page, and of a large one below dir.
func backendConfig(addr, dir string) string {
	return fmt.Sprintf(commonConfig, workers, fmt.Sprintf(`server {
    listen %s;
    location / { return 200 "hello, world\n"; }
    location /large { root %s; sendfile on; }
  }`, addr, dir))
}

// proxyConfig is nginx as one would set it up: connections to the backend are
// kept, X-Forwarded-For is added, websockets are let through, and bodies are passed on as
// they come. With the directory of a certificate it speaks TLS.
func proxyConfig(addr, backend, certificate string) string {
	secure := ""
	if certificate != "" {
		addr += " ssl http2"
		secure = fmt.Sprintf("ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; ssl_protocols TLSv1.3;", certificate)
	}
	return fmt.Sprintf(commonConfig, workers, fmt.Sprintf(`
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream backend { server %s; keepalive 128; keepalive_requests 100000000; }
  server {
    listen %s;
    %s
    client_max_body_size 0;
    location / {
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }`, backend, addr, secure))
}
