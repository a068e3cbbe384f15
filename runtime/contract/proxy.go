package contract

// CommandProxy is the command of Helper that terminates TLS for a container's
// ports. The container's init starts it when the first client connects, with the
// listening sockets from descriptor ProxySockets on.
const CommandProxy = "proxy"

// ProxySockets is the first descriptor of the sockets that listen at the TLS ports.
const ProxySockets = 3

// Where a container finds what its proxy works by.
const (
	ProxyDir        = "/etc/cf-assets/tls-proxy"
	ProxyConfigName = "config.json"
)

// ProxyConfig is what a proxy works by. The daemon replaces the file when a
// certificate, or whom to trust, changes: it holds for the connections from then
// on.
type ProxyConfig struct {
	Address string // of the container
	// Ports are the app's ports by the TLS ports that lead to them.
	Ports map[uint16]uint16
	// Certificate and Key are the instance's, in PEM.
	Certificate, Key string
	// InternalCertificate is for the same key, and for the names that other
	// containers know the instance by: the port InternalTLSPort shows it.
	InternalCertificate string
	// ClientCAs vouch for clients, in PEM, at all ports but InternalTLSPort; "": these
	// need no certificate.
	ClientCAs string
	// ClientNames are the names of which a client's certificate must have one; none:
	// any certificate will do.
	ClientNames []string
}

// The TLS ports of a container (executor: depot/containerstore/proxy_config_handler.go).
const (
	FirstTLSPort    = 61001
	LastTLSPort     = 65533
	InternalTLSPort = 61443 // from container to container, besides the one of DefaultPort
)
