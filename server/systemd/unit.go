package systemd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Service is a daemon as units run it.
type Service struct {
	Command []string // the binary, by its path, and its arguments
	Sockets []Socket // that the manager holds, also while the daemon is restarted
	DataDir string   // for who uninstalls it
}

// Socket is one address that it listens at.
type Socket struct {
	Name    string // as the daemon knows it
	Address string // host:port
}

// The names of units.
const (
	ServiceUnit = "cupola.service"
	SliceUnit   = "cupola.slice"
)

// Unit names the unit of a socket.
func (s Socket) Unit() string { return "cupola-" + s.Name + ".socket" }

// AllUnits are the names of all units that a service may have.
func AllUnits() []string {
	return []string{ServiceUnit, SliceUnit, Socket{Name: "http"}.Unit(), Socket{Name: "https"}.Unit(), Socket{Name: "ssh"}.Unit()}
}

// DataDirOf reads the data directory off the text of a service's unit.
func DataDirOf(unit string) (string, error) {
	for line := range strings.Lines(unit) {
		if text, ok := strings.CutPrefix(line, "X-DataDir="); ok { // systemd leaves what begins with X- alone
			return strconv.Unquote(strings.TrimSpace(text))
		}
	}
	return "", errors.New("the unit names no data directory: it is none of 'cupola install'")
}

// Units are the units of a service, by the names of their files.
func (s Service) Units() map[string]string {
	units := map[string]string{ServiceUnit: s.service(), SliceUnit: slice}
	for _, k := range s.Sockets {
		units[k.Unit()] = fmt.Sprintf(socket, k.Name, k.Address, k.Name)
	}
	return units
}

func (s Service) service() string {
	var sockets, quoted []string
	for _, k := range s.Sockets {
		sockets = append(sockets, k.Unit())
	}
	for _, word := range s.Command {
		quoted = append(quoted, quote(word))
	}
	needs := strings.Join(sockets, " ")
	return fmt.Sprintf(service, needs, needs, needs, strings.Join(quoted, " "), strconv.Quote(s.DataDir))
}

// quote writes a word of a command line so that systemd takes it for one, and
// for nothing else.
func quote(word string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`, "\t", `\t`).Replace(word)
	if escaped == word && word != "" && !strings.ContainsAny(word, " ';") {
		return word
	}
	return `"` + escaped + `"`
}

const slice = `[Unit]
Description=cupola
Documentation=man:cupola(1)
Before=slices.target

[Slice]
MemoryAccounting=yes
CPUAccounting=yes
TasksAccounting=yes
`

const socket = `[Unit]
Description=cupola: where it listens for %s
Documentation=man:cupola(1)

[Socket]
ListenStream=%s
FileDescriptorName=%s
Service=cupola.service
Backlog=4096
NoDelay=yes
# So that an address of an interface that is not up yet is no obstacle.
FreeBind=yes

[Install]
WantedBy=sockets.target
`

// Containers inherit what a unit does to its processes by a seccomp filter, and
// their mounts must be where the next daemon finds them. So nothing is set that
// filters system calls or makes a mount namespace; what is left is below.
const service = `[Unit]
Description=cupola: Cloud Foundry on one machine
Documentation=man:cupola(1)
Wants=network-online.target
After=network-online.target %s
Requires=%s
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
Sockets=%s
# The daemon gives the sockets of TCP routes to systemd, which hands them to the
# next one: their ports are as many as there are routes.
FileDescriptorStoreMax=65535
ExecStart=%s
# Certificates, the log level and some limits; the log says what changed.
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
TimeoutStartSec=300
TimeoutStopSec=90
WatchdogSec=60
# Apps outlive the daemon: the next one adopts them.
KillMode=process
SendSIGKILL=yes
Slice=cupola.slice
Delegate=yes
OOMScoreAdjust=-900
LimitNOFILE=1048576
LimitCORE=0
TasksMax=infinity
# No directive that makes a mount namespace (Protect…, Private…, ReadOnlyPaths=):
# the containers' mounts would go with the daemon. None that filters system
# calls (SystemCallFilter=, Restrict…, LockPersonality=, MemoryDenyWriteExecute=):
# apps would inherit it. The daemon confines them itself.
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_RAWIO CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_SYSLOG CAP_SYS_PACCT CAP_SYS_TTY_CONFIG CAP_LEASE
X-DataDir=%s

[Install]
WantedBy=multi-user.target
`
