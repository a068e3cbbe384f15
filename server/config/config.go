// Package config is the configuration of a daemon, whose fields are the flags of
// cupola serve, and what follows from it alone.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/pattern"
	"cupola/server/acme"
	"cupola/server/admin/lowwater"
	"cupola/server/admin/offsite"
	"cupola/server/bbs"
	"cupola/server/cells"
	"cupola/server/certs"
	"cupola/server/databroker"
	"cupola/server/front"
	"cupola/server/images"
	"cupola/server/manifest"
	"cupola/server/otlp"
	"cupola/server/router"
	"cupola/server/systemd"
	"cupola/server/uaa"
	"cupola/store/cf"
	"cupola/web"
)

// Config says how a daemon runs. Its fields are the flags of cupola serve, with
// their help, defaults and environment variables; the zero value of a field takes
// its default.
type Config struct {
	DataDir string `help:"The data directory." default:"/var/lib/cupola" env:"CUPOLA_DATA_DIR" placeholder:"DIR"`
	images.Registries
	cells.Config
	HTTP             string         `help:"Address of the API and of apps' HTTP routes." default:"127.0.0.1:8080" env:"CUPOLA_HTTP" placeholder:"ADDR"`
	HTTPS            string         `help:"Address of the same with TLS; 'off' disables it." default:"127.0.0.1:8443" env:"CUPOLA_HTTPS" placeholder:"ADDR"`
	TLSFiles         certs.Files    `embed:"" prefix:"tls-"`
	ACME             acme.Flags     `embed:""`
	EmptyPool        time.Duration  `name:"empty-pool-timeout" help:"How long a route answers 503 after the last instance left, before it answers 404." default:"0s" env:"CUPOLA_EMPTY_POOL_TIMEOUT" placeholder:"TIME"`
	DrainWait        time.Duration  `name:"drain-wait" help:"How long the daemon serves on after SIGTERM, with a health that sends load balancers elsewhere; at most 1m." default:"0s" env:"CUPOLA_DRAIN_WAIT" placeholder:"TIME"`
	RouterSegments   []string       `name:"router-segments" help:"Isolation segments whose apps --http and --https serve; 'shared' is that of apps in no other. All by default." env:"CUPOLA_ROUTER_SEGMENTS" placeholder:"NAME"`
	SegmentRouters   []string       `name:"segment-router" help:"Address of a router that serves only the apps of isolation segments, like red=127.0.0.1:8081 or red+blue=127.0.0.1:8081; none by default." env:"CUPOLA_SEGMENT_ROUTER" placeholder:"NAME=ADDR"`
	SegmentHTTPS     []string       `name:"segment-router-https" help:"Address of the same with TLS, like red=127.0.0.1:8444; none by default." env:"CUPOLA_SEGMENT_ROUTER_HTTPS" placeholder:"NAME=ADDR"`
	BackendTLS       bool           `name:"backend-tls" help:"Connect to apps' instances with TLS, and check that the certificate is the instance's." env:"CUPOLA_BACKEND_TLS"`
	SSH              string         `name:"ssh" help:"Address of 'cf ssh' and git push over SSH; 'off' disables it (default 127.0.0.1:2222, or a free port if that is in use)." env:"CUPOLA_SSH" placeholder:"ADDR"`
	TCP              string         `name:"tcp" help:"Address and ports of TCP routes, like 127.0.0.1:1024-1123,2000; 'off' disables them." default:"127.0.0.1:1024-1123" env:"CUPOLA_TCP" placeholder:"ADDR"`
	BBS              string         `name:"bbs" help:"Address of Diego's BBS API, for clients like cfdot; disabled by default." env:"CUPOLA_BBS" placeholder:"ADDR"`
	BBSFiles         bbs.OwnFiles   `embed:"" prefix:"bbs-"`
	Director         string         `name:"director" help:"Address of the API of BOSH's director, for the bosh CLI; disabled by default." env:"CUPOLA_DIRECTOR" placeholder:"ADDR"`
	Metrics          string         `help:"Address of /metrics for Prometheus, served without authentication; disabled by default." env:"CUPOLA_METRICS" placeholder:"ADDR"`
	Telemetry        otlp.Flags     `embed:""`
	Domain           string         `help:"Domain of apps. The API answers at api.DOMAIN, localhost and every IP address." default:"localhost" env:"CUPOLA_DOMAIN"`
	AdminPassword    string         `help:"Admin password; generated once by default." env:"CUPOLA_ADMIN_PASSWORD" placeholder:"PASSWORD"`
	PasswordPolicy   map[string]int `help:"Policy for new passwords: min-length, upper, lower, digits and special, like min-length=12,digits=1." mapsep:"," env:"CUPOLA_PASSWORD_POLICY" placeholder:"NAME=N,…"`
	AllowLoopback    bool           `help:"Allow syslog drains, route services, image registries and space-scoped brokers at this machine's own addresses. Services there may trust any local connection." env:"CUPOLA_ALLOW_LOOPBACK"`
	DataServices     []string       `name:"data-services" help:"Services of the built-in broker: postgres, mysql, redis, nats, rabbitmq, smtp, files, s3, memcached; and files or directories of your own services, like /etc/cupola/services. Disabled by default. All built-in ones but files require what 'cupola broker prepare' makes." env:"CUPOLA_DATA_SERVICES" placeholder:"NAME"`
	ServiceBackups   int            `help:"Number of backups to keep of each instance of the built-in broker; the oldest ones beyond it are deleted." default:"7" env:"CUPOLA_SERVICE_BACKUPS" placeholder:"N"`
	Backups          offsite.Flags  `embed:""`
	LogArchive       string         `help:"Room for log lines that are older than what 'cf logs --recent' shows, compressed, of all apps together: a size like 1G, or 'off'." default:"512M" env:"CUPOLA_LOG_ARCHIVE" placeholder:"SIZE"`
	LogArchiveDays   int            `help:"How many days such log lines are kept." default:"30" env:"CUPOLA_LOG_ARCHIVE_DAYS" placeholder:"N"`
	DiskLowWater     string         `help:"Free space of the data directory's disk below which the daemon deletes caches, the longest unused first: a part like 5%, a size like 10G, or 'off'; by default 5%, at most 10G." env:"CUPOLA_DISK_LOW_WATER" placeholder:"SIZE"`
	MaxBindings      int            `name:"max-service-bindings" help:"Maximum number of bindings of an app to one service instance; two or more allow rotation." default:"5" env:"CUPOLA_MAX_SERVICE_BINDINGS" placeholder:"N"`
	InstanceCertLife time.Duration  `help:"Lifetime of instance identity certificates. They are renewed 30 minutes before they expire, or a quarter of the lifetime if that is less. Those of the built-in services live 30 times as long, and are renewed as often." default:"24h" env:"CUPOLA_INSTANCE_CERT_LIFE" placeholder:"TIME"`
	InstanceTLS      string         `name:"instance-tls" help:"TLS ports of instances (61001 and up, 61443 between containers): 'on', 'off', or 'mutual', where clients must show a certificate." default:"on" env:"CUPOLA_INSTANCE_TLS" placeholder:"MODE"`
	InstanceTLSCAs   []string       `name:"instance-tls-ca" help:"CA of the certificates of clients that may use the TLS ports of instances, besides the router; for --instance-tls mutual." env:"CUPOLA_INSTANCE_TLS_CA" placeholder:"FILE"`
	InstanceTLSNames []string       `name:"instance-tls-names" help:"Names of which the certificate of such a client must have one; any by default." env:"CUPOLA_INSTANCE_TLS_NAMES" placeholder:"NAME"`
	DefaultStack     string         `help:"Stack of apps that name none; by default the best one on this machine." env:"CUPOLA_DEFAULT_STACK" placeholder:"NAME"`

	StemcellStacks map[string]string `name:"stemcell-stack" help:"Stack on which BOSH releases are compiled and run for the stemcells of an OS, like ubuntu-jammy=debian12; by default the stack of the OS's name, or the first with a C compiler." mapsep:"," env:"CUPOLA_STEMCELL_STACK" placeholder:"OS=STACK"`

	SleepAfter     time.Duration `help:"How long an app without a label cupola.dev/sleep-after gets no request before it sleeps; never by default." env:"CUPOLA_SLEEP_AFTER" placeholder:"TIME"`
	SleepStopAfter time.Duration `help:"How long an app sleeps with its instances frozen, before they are stopped; of apps without a label cupola.dev/sleep-stop-after." default:"1h" env:"CUPOLA_SLEEP_STOP_AFTER" placeholder:"TIME"`

	QuotaAwakeOnly bool `help:"Count only apps that are awake toward quotas: those that sleep use none of the memory and instances that a quota allows." env:"CUPOLA_QUOTA_AWAKE_ONLY"`

	Engine string `help:"What starts containers: 'launch' (cupola's own program, on Linux 5.12 or later; before, runc is used), or 'runc' (libcontainer, which takes longer)." default:"launch" env:"CUPOLA_ENGINE" placeholder:"ENGINE"`

	AlertCommand string `help:"Shell command that gets alerts, as JSON on its standard input; it runs as root. Other targets of alerts are added by 'cupola alerts add-target'." env:"CUPOLA_ALERT_COMMAND" placeholder:"COMMAND"`

	StageUnchanged bool `help:"Stage every push, also one that changes nothing since the last one." env:"CUPOLA_STAGE_UNCHANGED"`

	Version   string                  `flag:"-"` // of the build
	Stop      StopMode                `flag:"-"`
	Listeners map[string]net.Listener `flag:"-"` // handed over by the service manager, by the flag that names the address: http, https, ssh, bbs, director, metrics; or by tcp- and the port
	Manager   systemd.Manager         `flag:"-"`
	Log       *slog.Logger            `flag:"-"`

	Debug   bool                   `flag:"-"` // of Level
	Level   *slog.LevelVar         `flag:"-"` // of Log; nil: it stays
	Hangup  <-chan os.Signal       `flag:"-"` // reloads the configuration; nil: never
	Reread  func() (Config, error) `flag:"-"` // reads it; not nil where Hangup is not
	Current *Current               `flag:"-"` // is made by Validate
}

// StopMode says what becomes of apps when the daemon ends.
type StopMode int

// The modes.
const (
	KeepApps StopMode = iota // they run on, and the next daemon adopts them
	StopApps                 // everything is taken down
)

// What an instance's certificate may live.
const (
	minCertLife = 10 * time.Second
	maxCertLife = 365 * 24 * time.Hour
)

var domainPattern = pattern.Lazy(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Validate fills in the defaults and checks the configuration; errors name the
// flag and what it accepts.
func (c *Config) Validate() error {
	setDefaults(reflect.ValueOf(c).Elem())
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Domain = strings.ToLower(strings.Trim(c.Domain, "."))
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	c.DataDir = dir
	err = errors.Join(c.checkNames(), c.checkAddresses(), c.checkSegments(), c.Config.Normalize(), front.CheckTCP(c.TCP), c.takeListeners(), c.checkPreloads(), c.checkServices(), c.checkInstanceTLS(), c.TLSFiles.Check(), c.ACME.Check(c.HTTPS), c.Telemetry.Check(), c.checkSleep(), c.checkEngine(), c.checkSecrets(), c.Backups.Check(), c.checkLowWater(), c.checkLogArchive())
	c.Current = &Current{}
	c.Current.Set(*c)
	return err
}

// setDefaults gives the fields that are empty what their tags say.
func setDefaults(of reflect.Value) {
	for i := range of.NumField() {
		f, tag := of.Field(i), of.Type().Field(i).Tag.Get("default")
		if tag == "" || !f.IsZero() {
			continue
		}
		switch f.Interface().(type) {
		case string:
			f.SetString(tag)
		case int:
			n, _ := strconv.Atoi(tag) // a test holds that all can be read
			f.SetInt(int64(n))
		case time.Duration:
			d, _ := time.ParseDuration(tag)
			f.SetInt(int64(d))
		}
	}
}

func (c *Config) checkNames() error {
	if !domainPattern().MatchString(c.Domain) || len(c.Domain) > 253 {
		return fmt.Errorf("invalid --domain %q: give a domain name, like apps.example.com", c.Domain)
	}
	return nil
}

// address is a flag that names where to listen.
type address struct {
	flag  string // without dashes
	value *string
}

func (c *Config) addresses() []address {
	return []address{{"http", &c.HTTP}, {"https", &c.HTTPS}, {"ssh", &c.SSH}, {"bbs", &c.BBS}, {"director", &c.Director}, {"metrics", &c.Metrics}}
}

func (c *Config) checkAddresses() (err error) {
	for _, a := range c.addresses() {
		if !isAddress(*a.value) && *a.value != "off" && *a.value != "" {
			err = errors.Join(err, fmt.Errorf("invalid --%s %q: give an address, like 127.0.0.1:8080", a.flag, *a.value))
		}
	}
	return err
}

func (c *Config) checkSegments() (err error) {
	if _, fault := front.ParseShard(c.RouterSegments); fault != nil {
		err = fmt.Errorf("invalid --router-segments %q: give names of isolation segments, like shared,red: %w", strings.Join(c.RouterSegments, ","), fault)
	}
	for flag, texts := range map[string][]string{"segment-router": c.SegmentRouters, "segment-router-https": c.SegmentHTTPS} {
		for _, text := range texts {
			if _, fault := front.ParseSegmentRouter(text); fault != nil {
				err = errors.Join(err, fmt.Errorf("invalid --%s %q: give isolation segments and an address, like red=127.0.0.1:8081: %w", flag, text, fault))
			}
		}
	}
	return err
}

// Shard is what --http and --https serve besides the API; nil is all.
func (c *Config) Shard() *router.Shard {
	s, _ := front.ParseShard(c.RouterSegments) // Validate has read it
	return s
}

// SegmentListeners are the routers of isolation segments.
func (c *Config) SegmentListeners() (all []front.SegmentRouter) {
	for n, text := range slices.Concat(c.SegmentRouters, c.SegmentHTTPS) {
		r, _ := front.ParseSegmentRouter(text) // Validate has read it
		r.TLS = n >= len(c.SegmentRouters)
		all = append(all, r)
	}
	return all
}

// The modes of --instance-tls.
const (
	InstanceTLSOn     = "on"
	InstanceTLSOff    = "off"
	InstanceTLSMutual = "mutual"
)

func (c *Config) checkInstanceTLS() error {
	modes := []string{InstanceTLSOn, InstanceTLSOff, InstanceTLSMutual}
	switch {
	case !slices.Contains(modes, c.InstanceTLS):
		return fmt.Errorf("invalid --instance-tls %q: give one of %s", c.InstanceTLS, strings.Join(modes, ", "))
	case c.BackendTLS && c.InstanceTLS == InstanceTLSOff:
		return errors.New("invalid --backend-tls: it needs --instance-tls on or mutual")
	case c.InstanceTLS != InstanceTLSMutual && len(c.InstanceTLSCAs)+len(c.InstanceTLSNames) > 0:
		return errors.New("invalid --instance-tls-ca or --instance-tls-names: they need --instance-tls mutual")
	case len(c.InstanceTLSCAs) == 0 && len(c.InstanceTLSNames) > 0:
		return errors.New("invalid --instance-tls-names: give --instance-tls-ca, too")
	}
	return nil
}

func (c *Config) checkSleep() error {
	for flag, d := range map[string]time.Duration{"sleep-after": c.SleepAfter, "sleep-stop-after": c.SleepStopAfter} {
		if _, err := cf.SleepTime(d.String()); err != nil && d != 0 {
			return fmt.Errorf("invalid --%s %s: give a time from 1s to 8760h, like 10m", flag, d)
		}
	}
	return nil
}

func (c *Config) checkLowWater() error {
	if _, err := lowwater.Parse(c.DiskLowWater); err != nil {
		return fmt.Errorf("--disk-low-water: %w", err)
	}
	return nil
}

func (c *Config) checkLogArchive() error {
	var err error
	if n, ok := manifest.ParseSize(c.LogArchive); c.LogArchive != "off" && (!ok || n <= 0) {
		err = fmt.Errorf("invalid --log-archive %q: give a size, like 1G, or off", c.LogArchive)
	}
	if c.LogArchiveDays < 1 || c.LogArchiveDays > maxLogDays {
		err = errors.Join(err, fmt.Errorf("invalid --log-archive-days %d: give a number from 1 to %d", c.LogArchiveDays, maxLogDays))
	}
	return err
}

// maxLogDays bounds --log-archive-days.
const maxLogDays = 3650

// LogArchiveBytes is the room for old log lines; 0: none is kept.
func (c *Config) LogArchiveBytes() int64 {
	n, _ := manifest.ParseSize(c.LogArchive) // checked already
	return max(n, 0)
}

// LowWater is the free space below which caches are deleted.
func (c *Config) LowWater() lowwater.Mark {
	m, _ := lowwater.Parse(c.DiskLowWater) // Validate has read it
	return m
}

func (c *Config) checkEngine() error {
	if kind := container.Kind(c.Engine); kind != container.Runc && kind != container.Launch {
		return fmt.Errorf("invalid --engine %q: give %s or %s", c.Engine, container.Runc, container.Launch)
	}
	return nil
}

func (c *Config) checkPreloads() error {
	_, err := c.Preloads()
	return err
}

func (c *Config) checkServices() (err error) {
	c.DataServices, err = databroker.ParseServices(c.DataServices)
	if c.None && len(c.DataServices) > 0 {
		err = errors.Join(err, errors.New("invalid --data-services: services of the built-in broker run on this machine alone, and --cells none has no containers there: leave one of both out"))
	}
	if c.ServiceBackups < 1 {
		err = errors.Join(err, fmt.Errorf("invalid --service-backups %d: give at least 1", c.ServiceBackups))
	}
	return err
}

// checkSecrets checks passwords and certificates.
func (c *Config) checkSecrets() error {
	var faults []error
	if len(c.AdminPassword) > 72 {
		faults = append(faults, errors.New("invalid --admin-password: give at most 72 bytes"))
	}
	if _, err := uaa.ParsePolicy(c.PasswordPolicy); err != nil {
		faults = append(faults, fmt.Errorf("--password-policy: %w", err))
	}
	if c.InstanceCertLife < minCertLife || c.InstanceCertLife > maxCertLife {
		faults = append(faults, fmt.Errorf("invalid --instance-cert-life %s: give %s to %s", c.InstanceCertLife, minCertLife, maxCertLife))
	}
	if c.DrainWait < 0 || c.DrainWait > time.Minute {
		faults = append(faults, fmt.Errorf("invalid --drain-wait %s: give 0s to 1m", c.DrainWait))
	}
	if c.EmptyPool < 0 {
		faults = append(faults, fmt.Errorf("invalid --empty-pool-timeout %s: give 0s or more", c.EmptyPool))
	}
	if f := c.BBSFiles; f != (bbs.OwnFiles{}) && (f.CA == "" || f.Cert == "" || f.Key == "") {
		faults = append(faults, errors.New("give --bbs-ca, --bbs-cert and --bbs-key together, or none of them"))
	}
	return errors.Join(faults...)
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// takeListeners takes the addresses of sockets that the service manager hands
// over, and refuses those at which nothing would answer.
func (c *Config) takeListeners() (err error) {
	addrs := map[string]*string{}
	for _, a := range c.addresses() {
		addrs[a.flag] = a.value
	}
	for name, l := range c.Listeners {
		addr := addrs[name]
		_, isPort := front.PortOf(name)
		switch {
		case isPort: // of a TCP route, from the daemon before
		case addr == nil:
			err = errors.Join(err, fmt.Errorf("the service manager hands over a socket %q: it has to be called http, https, ssh, bbs, director or metrics (FileDescriptorName=)", name))
		case *addr == "off":
			err = errors.Join(err, fmt.Errorf("--%s is off, but the service manager has its socket: stop cupola-%s.socket", name, name))
		default:
			*addr = l.Addr().String()
		}
	}
	return err
}

// APIHost is the host of the API besides IP addresses and localhost.
func (c *Config) APIHost() string { return "api." + c.Domain }

// APIURL is the API's URL as VCAP_APPLICATION names it to apps.
func (c *Config) APIURL() string {
	_, port, _ := net.SplitHostPort(c.HTTP)
	return "http://" + net.JoinHostPort(c.APIHost(), port)
}

// AutoscalerHost is where apps submit their metrics, and the autoscaler's CLI plugin asks.
func (c *Config) AutoscalerHost() string { return "autoscaler." + c.Domain }

// AutoscalerURL is its URL as the credentials of apps have it: by HTTPS, if there is that.
func (c *Config) AutoscalerURL() string {
	if _, port, err := net.SplitHostPort(c.HTTPS); err == nil {
		return "https://" + net.JoinHostPort(c.AutoscalerHost(), port)
	}
	_, port, _ := net.SplitHostPort(c.HTTP)
	return "http://" + net.JoinHostPort(c.AutoscalerHost(), port)
}

// ConsoleURL is the web console's URL for a browser of this machine.
func (c *Config) ConsoleURL() string {
	_, port, _ := net.SplitHostPort(c.HTTP)
	host := c.APIHost()
	if c.Domain == "localhost" {
		host = c.Domain
	}
	return "http://" + net.JoinHostPort(host, port)
}

// ServiceDashboard is the URL of the web console's page of a service instance; "" in a binary without the console.
func (c *Config) ServiceDashboard(instanceGUID string) string {
	if _, ok := web.FS(); !ok {
		return ""
	}
	return c.ConsoleURL() + "/console/services/instances/" + instanceGUID
}

// RouterAt is the address at which the router listens on a port; "" for none.
func (c *Config) RouterAt(port string) string {
	for _, listens := range []string{c.HTTP, c.HTTPS} {
		host, p, err := net.SplitHostPort(listens)
		if err != nil || p != port {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, p)
	}
	return ""
}

// IsListener reports whether an address leads to apps, as it does for everybody who
// reaches this machine.
func (c *Config) IsListener(at netip.AddrPort) bool {
	listening := []string{c.HTTP, c.HTTPS}
	for _, r := range c.SegmentListeners() {
		listening = append(listening, r.Address)
	}
	for _, listens := range listening {
		host, port, err := net.SplitHostPort(listens)
		if err == nil && port == strconv.Itoa(int(at.Port())) && listensAt(host, at.Addr()) {
			return true
		}
	}
	host, ports, err := front.ParseTCP(c.TCP)
	return err == nil && ports.Contain(int(at.Port())) && listensAt(host, at.Addr())
}

// listensAt reports whether a listener of a host listens at an address.
func listensAt(host string, at netip.Addr) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "" || err == nil && (ip.IsUnspecified() || ip.Unmap() == at)
}
