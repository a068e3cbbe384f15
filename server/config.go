package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/registry"
	"cupola/runtime/identity"
	"cupola/server/databroker"
	"cupola/server/systemd"
	"cupola/server/uaa"
)

// Config says how a daemon runs. The zero value of a field takes the default
// that stands with it.
type Config struct {
	DataDir       string // /var/lib/cupola
	HTTP          string // 127.0.0.1:8080; port 0 takes a free one
	HTTPS         string // 127.0.0.1:8443; "off" for none
	SSH           string // 127.0.0.1:2222, or a free port where that is taken; "off" for none
	TCP           string // TCP routes: 127.0.0.1:1024-1123; "off" for none
	BBS           string // Diego's BBS API; "" or "off" for none
	BBSFiles      BBSFiles
	Metrics       string             // for Prometheus; "" or "off" for none
	Domain        string             // of apps; "localhost"
	AdminPassword string             // made once and kept in the data directory
	Passwords     uaa.PasswordPolicy // of users' new ones
	DefaultStack  string             // the best there is
	MaxBindings   int                // of an app to one service instance at a time; 5
	Stop          StopMode
	// InstanceCertLife is how long instances' certificates are good: 10 s at
	// least, a year at most; 24 h. They are replaced half an hour before their
	// end, or a quarter of their life.
	InstanceCertLife time.Duration
	DataServices     []string                // what the built-in service broker offers, of databroker.Names; nil: there is none
	AllowLoopback    bool                    // syslog drains, route services, registries and brokers of spaces may be at this machine's own addresses
	Registries       registry.Config         // of images
	Cells            []CellConfig            // none: the machine is one
	Preloaded        map[string]string       // name of a root filesystem → a stack, a path or an image; nil: the stacks
	Providers        []string                // schemes of other root filesystems; nil: docker, oci
	Listeners        map[string]net.Listener // handed over by the service manager, by the flag that names the address: http, https, ssh, bbs, metrics; or by tcp- and the port
	Manager          systemd.Manager
	Log              *slog.Logger
}

// StopMode says what becomes of apps when the daemon ends.
type StopMode int

// The modes.
const (
	KeepApps StopMode = iota // they run on, and the next daemon adopts them
	StopApps                 // everything is taken down
)

// The defaults of Config.
const (
	DefaultDataDir = "/var/lib/cupola"
	DefaultHTTP    = "127.0.0.1:8080"
	DefaultHTTPS   = "127.0.0.1:8443"
	DefaultSSH     = "127.0.0.1:2222"
	DefaultDomain  = "localhost"
)

// What an instance's certificate may live.
const (
	minCertLife = 10 * time.Second
	maxCertLife = 365 * 24 * time.Hour
)

var domainPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// normalize fills in the defaults and says what cannot be, by the flag's name.
func (c *Config) normalize() error {
	set(&c.DataDir, DefaultDataDir)
	set(&c.HTTP, DefaultHTTP)
	set(&c.HTTPS, DefaultHTTPS)
	set(&c.Domain, DefaultDomain)
	set(&c.TCP, DefaultTCP)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Domain = strings.ToLower(strings.Trim(c.Domain, "."))
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	c.DataDir = dir
	var faults []error
	if !domainPattern.MatchString(c.Domain) || len(c.Domain) > 253 {
		faults = append(faults, fmt.Errorf("--domain %q is no domain name, like apps.example.com", c.Domain))
	}
	for flag, addr := range map[string]string{"--http": c.HTTP, "--https": c.HTTPS, "--ssh": c.SSH, "--bbs": c.BBS, "--metrics": c.Metrics} {
		if !isAddress(addr) && addr != "off" && addr != "" {
			faults = append(faults, fmt.Errorf("%s %q is no address like 127.0.0.1:8080", flag, addr))
		}
	}
	faults = append(faults, c.normalizeCells(), c.checkTCP(), c.normalizeListeners())
	if _, err := c.preloads(); err != nil {
		faults = append(faults, err)
	}
	for _, name := range c.DataServices {
		if !slices.Contains(databroker.Names(), name) {
			faults = append(faults, fmt.Errorf("--data-services: %q is none of %s", name, strings.Join(databroker.Names(), ", ")))
		}
	}
	if len(c.AdminPassword) > 72 {
		faults = append(faults, errors.New("--admin-password is longer than 72 bytes"))
	}
	if c.InstanceCertLife == 0 {
		c.InstanceCertLife = identity.DefaultLife
	}
	if c.InstanceCertLife < minCertLife || c.InstanceCertLife > maxCertLife {
		faults = append(faults, fmt.Errorf("--instance-cert-life %s is not between %s and %s", c.InstanceCertLife, minCertLife, maxCertLife))
	}
	if f := c.BBSFiles; f != (BBSFiles{}) && (f.CA == "" || f.Cert == "" || f.Key == "") {
		faults = append(faults, errors.New("--bbs-ca, --bbs-cert and --bbs-key go together"))
	}
	return errors.Join(faults...)
}

// normalizeForRoot is normalize for what nobody else may do.
func (c *Config) normalizeForRoot() error {
	err := c.normalize()
	if os.Geteuid() != 0 {
		err = errors.Join(err, errors.New("containers need root: run it with sudo"))
	}
	return err
}

// Check says what cannot be, by the flag's name.
func (c Config) Check() error { return c.normalize() }

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// normalizeListeners refuses sockets that nobody would answer.
func (c *Config) normalizeListeners() (err error) {
	addrs := map[string]*string{"http": &c.HTTP, "https": &c.HTTPS, "ssh": &c.SSH, "bbs": &c.BBS, "metrics": &c.Metrics}
	for name, l := range c.Listeners {
		addr := addrs[name]
		_, isPort := portOf(name)
		switch {
		case isPort: // of a TCP route, from the daemon before
		case addr == nil:
			err = errors.Join(err, fmt.Errorf("the service manager hands over a socket %q: it has to be called http, https, ssh, bbs or metrics (FileDescriptorName=)", name))
		case *addr == "off":
			err = errors.Join(err, fmt.Errorf("--%s is off, but the service manager has its socket: stop cupola-%s.socket", name, name))
		default:
			*addr = l.Addr().String()
		}
	}
	return err
}

func set(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// APIHost is the host of the API beside IP addresses and localhost.
func (c *Config) APIHost() string { return "api." + c.Domain }
