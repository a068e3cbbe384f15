package server

import (
	"context"
	"io"
	"net"

	"cupola/runtime/contract"
	"cupola/server/api"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
)

// openSSH makes the proxy, with a host key that is made once.
func (d *daemon) openSSH(context.Context) error {
	if d.SSH == "off" {
		return nil
	}
	key, err := sshproxy.HostKey(d.dir.Path("ssh_host_key"))
	if err != nil {
		return err
	}
	d.sshKey = sshproxy.Fingerprint(key.PublicKey())
	d.ssh = sshproxy.New(sshproxy.Config{Store: d.store, HostKey: key, Logs: d.logs.Line, Log: d.Log, MaxConnections: d.limits.SSH,
		Redeem: func(ctx context.Context, code string) (sshproxy.Identity, error) {
			id, err := d.uaa.Redeem(ctx, uaa.SSHClient, code)
			return sshproxy.Identity(id), err
		},
		Attach: func(ctx context.Context, instanceGUID string) (io.ReadWriteCloser, error) {
			return d.cell.Attach(ctx, instanceGUID, contract.Helper, contract.CommandSSHD)
		}})
	return nil
}

// sshInfo is what the API says of `cf ssh`.
func (d *daemon) sshInfo() api.SSHInfo {
	if d.ssh == nil {
		return api.SSHInfo{}
	}
	return api.SSHInfo{Address: d.SSH, HostKeyFingerprint: d.sshKey, ClientID: uaa.SSHClient}
}

// serveSSH serves sessions on l until ctx or live ends: a daemon that ends
// waits for requests, and not for users to leave.
func (d *daemon) serveSSH(ctx, live context.Context, l net.Listener) error {
	if l == nil {
		return nil
	}
	live, stop := context.WithCancel(live)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return d.ssh.Serve(live, l)
}
