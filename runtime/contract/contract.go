// Package contract states what the daemon and the programs inside containers
// must agree on: the user of apps and its directories, where cupola's programs
// are, environment variables, the files of a staging and the limits of what it
// may declare. The names and numbers are Cloud Foundry's unless a comment says
// otherwise.
//
// Both sides import it, and it imports neither.
package contract

// The user and the group that apps run as, and its directories, on every stack.
const (
	VcapID   = 2000 // of the user and of the group
	VcapName = "vcap"
	Home     = "/home/vcap" // a droplet is unpacked here
	AppDir   = Home + "/app"
)

// Where containers find certificates: the directory of those that Cloud Controller has them trust,
// the name of its first file, and those of a container itself, as Diego has them.
const (
	SystemCertificates  = "/etc/cf-system-certificates"
	TrustedAuthority    = "trusted-ca-1.crt"
	InstanceCredentials = "/etc/cf-instance-credentials"
	InstanceCertificate = "instance.crt"
	InstanceKey         = "instance.key"
)

// DefaultPort is the port that an app listens on unless its routes say
// otherwise.
const DefaultPort = 8080

// Environment variables that the daemon sets and cupola's programs in containers read.
const (
	EnvPort          = "PORT"
	EnvInstanceGUID  = "INSTANCE_GUID"
	EnvInstanceIndex = "INSTANCE_INDEX"
	EnvApplication   = "VCAP_APPLICATION"
	EnvServices      = "VCAP_SERVICES"
	EnvDatabaseURL   = "DATABASE_URL"
	EnvStack         = "CF_STACK" // the stack's name, while staging
	// EnvCertificates names the directory of the certificates that an operator
	// has apps trust.
	EnvCertificates = "CF_SYSTEM_CERT_PATH"
	// EnvBuildpackURL is the URL that fetch downloads, which may hold a password:
	// every user of the machine can read a command line. cupola's own name.
	EnvBuildpackURL = "BUILDPACK_URL"
	// Of Cloud Native Buildpacks: where a droplet has the layers and the app, and what
	// registries ask for, as JSON, while buildpacks are downloaded.
	EnvCNBLayers      = "CNB_LAYERS_DIR"
	EnvCNBApp         = "CNB_APP_DIR"
	EnvCNBCredentials = "CNB_REGISTRY_CREDS"
)

// RailsScheme returns the scheme that DATABASE_URL has for a database whose URL
// has the given one, and whether there is one: Cloud Foundry's table, made for
// Rails.
func RailsScheme(scheme string) (string, bool) {
	switch scheme {
	case "mysql", "mysql2":
		return "mysql2", true
	case "postgres", "postgresql":
		return "postgres", true
	}
	return "", false
}
