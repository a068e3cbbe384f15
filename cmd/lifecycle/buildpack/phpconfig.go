package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/cmd/lifecycle/phpapp"
)

// writeConfig writes the configuration of PHP, of its process manager and of the web server, with the user's files of .bp-config over it.
func (a *phpApp) writeConfig() error {
	dir := filepath.Join(a.deps, "php")
	for _, name := range []string{"php.ini.d", "fpm.d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	lines := a.extensionLines()
	at := "${DEPS_DIR}/" + a.index + "/php"
	files := map[string]string{
		"php.ini":      phpSettings + "include_path = \".:/usr/share/php:${HOME}/" + a.options.LibDir + "\"\n" + strings.Join(lines, "\n") + "\n",
		"php-fpm.conf": phpPool + "include = " + at + "/fpm.d/*.conf\n",
		"fpm.d/0.conf": "; files of .bp-config/php/fpm.d follow\n", // a pattern must match something
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"php.ini.d", "fpm.d"} {
		// Files of PHP read the environment's variables in this form.
		if err := a.overlay(filepath.Join(".bp-config", "php", name), filepath.Join(dir, name), strings.NewReplacer("@{", "${")); err != nil {
			return err
		}
	}
	if a.options.WebServer == "none" {
		return nil
	}
	server, err := a.webServer(dir)
	if err != nil {
		return err
	}
	programs := phpapp.App{Config: at + "/server", WebDir: a.options.WebDir, Programs: [][]string{{a.php.fpm, "--nodaemonize", "--fpm-config", at + "/php-fpm.conf", "-c", at + "/php.ini"}, server}}
	text, err := json.Marshal(programs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "app.json"), text, 0o644)
}

// overlay copies the user's files of a directory of the app over those of another; there need not be one.
func (s *stage) overlay(from, to string, replace *strings.Replacer) error {
	root, err := os.OpenRoot(s.app)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files, _ := filepath.Glob(filepath.Join(s.app, from, "*"))
	more, _ := filepath.Glob(filepath.Join(s.app, from, "*", "*"))
	for _, file := range append(files, more...) {
		name, err := filepath.Rel(s.app, file)
		if err != nil {
			return err
		}
		if info, err := root.Stat(name); err != nil || info.IsDir() {
			continue
		}
		text, err := readOptional(root, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(name, from))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(replace.Replace(string(text))), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// firstExtensions are modules that others need, and so are loaded before them.
var firstExtensions = []string{"mysqlnd", "pdo", "xml", "dom", "igbinary", "msgpack"}

// zendExtensions are loaded by another directive.
var zendExtensions = []string{"opcache", "xdebug"}

// extensionLines loads all modules of the stack, as its packages do, except a debugger that was not requested. It warns of requested ones
// that are missing.
func (a *phpApp) extensionLines() []string {
	files, _ := filepath.Glob(filepath.Join(a.php.extensions, "*.so"))
	var have []string
	for _, f := range files {
		have = append(have, strings.TrimSuffix(filepath.Base(f), ".so"))
	}
	for _, name := range slices.Concat(a.options.Extensions, a.composer.extensions, a.options.ZendExtensions) {
		name = strings.TrimSuffix(strings.ToLower(name), ".so")
		if !slices.Contains(have, name) && !slices.Contains(a.php.builtIn, name) && !slices.Contains(a.php.builtIn, "zend "+name) {
			a.warn("The extension '%s' is not provided by this buildpack: %s lacks it (Debian has php-%s: cupola stack build debian12 --with php --package php-%s).", name, stackName(), name, name)
		}
	}
	var lines []string
	for _, name := range append(slices.Clone(firstExtensions), have...) {
		line := "extension = " + name + ".so"
		if slices.Contains(zendExtensions, name) {
			line = "zend_" + line
		}
		if !slices.Contains(have, name) || slices.Contains(a.php.builtIn, name) || slices.Contains(lines, line) || name == "xdebug" && !slices.Contains(a.options.ZendExtensions, name) {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// webServer writes the configuration of the web server and returns its command.
func (a *phpApp) webServer(dir string) ([]string, error) {
	httpd, errHTTPD := a.find("php", "", []string{"apache2", "httpd"}, "/usr/sbin", "/usr/local/apache2/bin")
	nginx, errNginx := a.findNginx()
	kind, program, files := "httpd", httpd, httpdFiles(a.options.WebDir)
	switch {
	case a.options.WebServer == "httpd" && errHTTPD != nil:
		return nil, fmt.Errorf("WEB_SERVER of .bp-config/options.json: %w", errHTTPD)
	case a.options.WebServer == "nginx" && errNginx != nil:
		return nil, fmt.Errorf("WEB_SERVER of .bp-config/options.json: %w", errNginx)
	case errHTTPD != nil && errNginx != nil:
		return nil, errors.Join(errHTTPD, errNginx)
	case a.options.WebServer == "nginx", errHTTPD != nil:
		kind, program, files = "nginx", nginx, nginxFiles
	}
	a.step("Using %s of the stack as the web server", kind)
	server := filepath.Join(dir, "server")
	for name, text := range files {
		path := filepath.Join(server, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := a.overlay(filepath.Join(".bp-config", kind), filepath.Join(server, filepath.Dir(mainFile[kind])), strings.NewReplacer()); err != nil {
		return nil, err
	}
	conf := "${SERVER_CONFIG}/" + mainFile[kind]
	if kind == "nginx" {
		return []string{program, "-p", "${SERVER_CONFIG}", "-c", conf}, nil
	}
	return []string{program, "-d", "${SERVER_CONFIG}", "-f", conf, "-DFOREGROUND"}, os.Symlink(apacheModules(), filepath.Join(server, "modules"))
}

// mainFile is the configuration's first file, by server.
var mainFile = map[string]string{"httpd": "conf/httpd.conf", "nginx": "nginx.conf"}

// apacheModules is where the stack has httpd's modules.
func apacheModules() string {
	for _, dir := range []string{"/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"} {
		if exists(dir) {
			return dir
		}
	}
	return "/usr/local/apache2/modules"
}

// The settings of Cloud Foundry's buildpack that differ from PHP's defaults.
const phpSettings = `[PHP]
output_buffering = 4096
expose_php = Off
max_execution_time = 30
memory_limit = 128M
error_reporting = E_ALL & ~E_DEPRECATED
display_errors = Off
display_startup_errors = Off
log_errors = On
variables_order = "GPCS"
request_order = "GP"
enable_dl = Off
post_max_size = 8M
upload_max_filesize = 2M
sys_temp_dir = "${TMPDIR}"
upload_tmp_dir = "${TMPDIR}"
session.save_path = "${TMPDIR}"
session.name = JSESSIONID
session.gc_probability = 1
`

const phpPool = `[global]
error_log = /proc/self/fd/2
daemonize = no
log_limit = 8192

[www]
listen = ${TMPDIR}/php-fpm.sock
pm = dynamic
pm.max_children = 5
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
clear_env = no
catch_workers_output = yes
decorate_workers_output = no
`

// nginxFiles have the names that Cloud Foundry's buildpack gives them, since users replace single ones.
var nginxFiles = map[string]string{
	"nginx.conf": `include nginx-defaults.conf;
include nginx-workers.conf;
http {
  include http-defaults.conf;
  include http-logging.conf;
  include http-php.conf;
  server {
    include server-defaults.conf;
    include server-locations.conf;
  }
}
`,
	"nginx-defaults.conf": "daemon off;\nerror_log stderr notice;\npid ${TMPDIR}/nginx.pid;\n",
	"nginx-workers.conf":  "worker_processes auto;\nevents { worker_connections 1024; }\n",
	"http-defaults.conf": `include mime.types;
default_type application/octet-stream;
sendfile on;
keepalive_timeout 65;
gzip on;
port_in_redirect off;
server_tokens off;
root ${HOME}/@{WEBDIR};
index index.php index.html;
client_body_temp_path ${TMPDIR}/nginx_client_body;
proxy_temp_path ${TMPDIR}/nginx_proxy;
fastcgi_temp_path ${TMPDIR}/nginx_fastcgi;
uwsgi_temp_path ${TMPDIR}/nginx_uwsgi;
scgi_temp_path ${TMPDIR}/nginx_scgi;
`,
	"http-logging.conf": `log_format extended '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent vcap_request_id=$http_x_vcap_request_id';
access_log /dev/stdout extended;
`,
	"http-php.conf": `map $http_x_forwarded_proto $proxy_https { https on; }
map $http_x_forwarded_proto $redirect_scheme { default http; https https; }
upstream php_fpm { server unix:@{PHP_FPM_LISTEN}; }
`,
	"server-defaults.conf": `listen ${PORT};
server_name _;
real_ip_header x-forwarded-for;
set_real_ip_from 10.0.0.0/8;
real_ip_recursive on;
`,
	"server-locations.conf": `location ~ /\. { deny all; access_log off; log_not_found off; }
location ~ .*\.php$ {
  try_files $uri =404;
  include fastcgi_params;
  fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
  fastcgi_pass php_fpm;
}
location ~ "^(.*)[^/]$" {
  if (-d $document_root$uri) { rewrite ^ $redirect_scheme://$http_host$uri/ permanent; }
}
`,
	"fastcgi_params": `fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param SCRIPT_NAME $fastcgi_script_name;
fastcgi_param REQUEST_URI $request_uri;
fastcgi_param DOCUMENT_URI $document_uri;
fastcgi_param DOCUMENT_ROOT $document_root;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param GATEWAY_INTERFACE CGI/1.1;
fastcgi_param SERVER_SOFTWARE nginx;
fastcgi_param REMOTE_ADDR $remote_addr;
fastcgi_param REMOTE_PORT $remote_port;
fastcgi_param SERVER_ADDR $server_addr;
fastcgi_param SERVER_PORT $server_port;
fastcgi_param SERVER_NAME $host;
fastcgi_param HTTPS $proxy_https if_not_empty;
fastcgi_param HTTP_PROXY "";
fastcgi_param REDIRECT_STATUS 200;
`,
	"mime.types": `types {
  text/html html htm; text/css css; text/xml xml; text/plain txt; text/csv csv; application/json json; text/javascript js mjs;
  image/gif gif; image/jpeg jpeg jpg; image/png png; image/svg+xml svg svgz; image/webp webp; image/x-icon ico;
  font/woff woff; font/woff2 woff2; font/ttf ttf; application/pdf pdf; application/wasm wasm; application/zip zip;
  audio/mpeg mp3; video/mp4 mp4; video/webm webm;
}
`,
}

// httpdFiles likewise. Modules may be part of the program, where the system built it so.
func httpdFiles(webDir string) map[string]string {
	var modules strings.Builder
	for _, name := range strings.Fields("mpm_event authz_core authz_host log_config env setenvif dir mime reqtimeout unixd proxy proxy_fcgi remoteip rewrite filter deflate headers expires") {
		fmt.Fprintf(&modules, "<IfModule !%s_module>\n  LoadModule %s_module modules/mod_%s.so\n</IfModule>\n", name, name, name)
	}
	return map[string]string{
		"conf/httpd.conf": `ServerRoot "@{SERVER_CONFIG}"
Listen ${PORT}
ServerName "0.0.0.0"
ServerTokens Prod
DocumentRoot "${HOME}/` + webDir + `"
Include conf/extra/httpd-modules.conf
Include conf/extra/httpd-directories.conf
Include conf/extra/httpd-mime.conf
Include conf/extra/httpd-logging.conf
Include conf/extra/httpd-mpm.conf
Include conf/extra/httpd-remoteip.conf
Include conf/extra/httpd-php.conf
RequestHeader unset Proxy early
`,
		"conf/extra/httpd-modules.conf": modules.String(),
		"conf/extra/httpd-directories.conf": `<Directory />
  AllowOverride none
  Require all denied
</Directory>
<Directory "${HOME}/` + webDir + `">
  Options SymLinksIfOwnerMatch
  AllowOverride All
  Require all granted
</Directory>
<Files ".ht*">
  Require all denied
</Files>
`,
		"conf/mime.types": "text/html html htm\ntext/css css\ntext/plain txt\ntext/csv csv\ntext/javascript js mjs\napplication/json json\napplication/xml xml\napplication/pdf pdf\napplication/wasm wasm\napplication/zip zip\n" +
			"image/gif gif\nimage/jpeg jpeg jpg\nimage/png png\nimage/svg+xml svg svgz\nimage/webp webp\nimage/x-icon ico\nfont/woff woff\nfont/woff2 woff2\nfont/ttf ttf\naudio/mpeg mp3\nvideo/mp4 mp4\nvideo/webm webm\n",
		"conf/extra/httpd-mime.conf": "TypesConfig conf/mime.types\nAddOutputFilterByType DEFLATE text/html text/css text/plain text/javascript application/json application/xml image/svg+xml\n",
		"conf/extra/httpd-logging.conf": `ErrorLog "/proc/self/fd/2"
LogLevel warn
LogFormat "%a %l %u %t \"%r\" %>s %b vcap_request_id=%{X-Vcap-Request-Id}i peer_addr=%{c}a" extended
CustomLog "/proc/self/fd/1" extended
`,
		"conf/extra/httpd-mpm.conf":      "PidFile \"${TMPDIR}/httpd.pid\"\nMutex file:${TMPDIR} default\nStartServers 1\nThreadsPerChild 25\nMinSpareThreads 25\nMaxSpareThreads 75\nMaxRequestWorkers 400\n",
		"conf/extra/httpd-remoteip.conf": "RemoteIPHeader x-forwarded-for\nRemoteIPInternalProxy 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16\nSetEnvIf x-forwarded-proto https HTTPS=on\n",
		"conf/extra/httpd-php.conf": `DirectoryIndex index.php index.html index.htm
<Proxy "unix:@{PHP_FPM_LISTEN}|fcgi://localhost/">
  ProxySet disablereuse=On retry=0
</Proxy>
<Directory "${HOME}/` + webDir + `">
  <Files *.php>
    <If "-f %{REQUEST_FILENAME}">
      SetHandler "proxy:unix:@{PHP_FPM_LISTEN}|fcgi://localhost/"
    </If>
  </Files>
</Directory>
`,
	}
}
