package cell

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
)

// Identities issues instance identity certificates: an identity.Authority.
type Identities interface {
	Issue(identity.Subject) (identity.Credentials, error)
	IssueLight(identity.Subject) (identity.Credentials, error)
	IssueServer(identity.Subject) (identity.Credentials, error)
	Certify(s identity.Subject, of []byte) (certificate []byte, err error)
	Certificate() []byte // of the authority
	// How long before its end one is replaced; RenewServerBefore is that of IssueServer.
	RenewBefore() time.Duration
	RenewServerBefore() time.Duration
}

// The directories that hold them.
const (
	credentialsTree = "credentials"
	authorityTree   = "authority"
	proxyTree       = "proxy"
)

// makeCredentials gives the container its certificate, if it needs one.
func (b *build) makeCredentials() error {
	issuer := b.cell.cfg.Identities
	if issuer == nil {
		return nil
	}
	b.update(func(r *record) { r.TLSPorts = b.hasTLSPorts() })
	if b.hasCredentials() || b.hasTLSPorts() {
		if err := b.renew(b.user.GID); err != nil {
			return &blame{"failed to create credentials directory", err}
		}
	}
	if b.full.SystemCertificatesPath == "" {
		return nil
	}
	if err := b.trust(b.user.GID); err != nil {
		return &blame{"failed to create credentials directory", err}
	}
	b.update(func(r *record) { r.HasAuthority = true })
	return nil
}

// renew gives the container, and its TLS ports, a new certificate, which its group gid
// can read. Without organizational units and names of servers only the TLS ports have one.
func (i *instance) renew(gid uint32) error {
	subject, err := i.subject()
	if err != nil {
		return err
	}
	c, err := i.issue(subject)
	if err != nil {
		return err
	}
	if i.hasCredentials() {
		files := []lrp.File{{Path: contract.InstanceCertificate, Content: c.Certificate}, {Path: contract.InstanceKey, Content: c.Key}}
		if err := i.cell.cfg.Files.Replace(i.guid(), credentialsTree, gid, files); err != nil {
			return err
		}
	}
	i.update(func(r *record) { r.CertifiedUntil = c.NotAfter })
	if !i.record().TLSPorts {
		return nil
	}
	return i.secure(gid, c)
}

func (i *instance) issue(s identity.Subject) (identity.Credentials, error) {
	switch by := i.cell.cfg.Identities; {
	case i.serves():
		return by.IssueServer(s)
	case i.hasCredentials():
		return by.Issue(s)
	default:
		return by.IssueLight(s)
	}
}

// hasCredentials reports whether the container itself has a certificate, which says whose it is or names its servers.
func (i *instance) hasCredentials() bool { return len(i.spec.OrganizationalUnits) > 0 || i.serves() }

// serves reports whether the container's certificate is that of its servers.
func (i *instance) serves() bool { return len(i.spec.ServerNames) > 0 }

func (i *instance) serverCertificateUntil(r record) (t time.Time) {
	if i.serves() {
		t = r.CertifiedUntil
	}
	return t
}

// renewBefore is how long before its end the container's certificate is replaced.
func (i *instance) renewBefore() time.Duration {
	if i.serves() {
		return i.cell.cfg.Identities.RenewServerBefore()
	}
	return i.cell.cfg.Identities.RenewBefore()
}

func (i *instance) subject() (identity.Subject, error) {
	address, err := netip.ParseAddr(i.record().Address)
	return identity.Subject{InstanceGUID: i.guid(), Address: address, OrganizationalUnits: i.spec.OrganizationalUnits, Names: i.spec.ServerNames}, err
}

// trust gives the container the certificates that it should trust.
func (i *instance) trust(gid uint32) error {
	files := []lrp.File{{Path: contract.TrustedAuthority, Content: i.cell.cfg.Identities.Certificate()}}
	return i.cell.cfg.Files.Replace(i.guid(), authorityTree, gid, files)
}

// credentialMounts show the container its certificate, and those that it should
// trust.
func (b *build) credentialMounts() []container.Mount {
	var mounts []container.Mount
	rec := b.record()
	if b.hasCredentials() && !rec.CertifiedUntil.IsZero() {
		mounts = append(mounts, b.memoryMount(credentialsTree, contract.InstanceCredentials))
	}
	if rec.TLSPorts {
		mounts = append(mounts, b.memoryMount(proxyTree, contract.ProxyDir))
	}
	if rec.HasAuthority {
		mounts = append(mounts, b.memoryMount(authorityTree, path.Clean("/"+b.full.SystemCertificatesPath)))
	}
	return mounts
}

// credentialEnv says where they are.
func (b *build) credentialEnv() []lrp.EnvVar {
	var env []lrp.EnvVar
	rec := b.record()
	if b.hasCredentials() && !rec.CertifiedUntil.IsZero() {
		env = append(env,
			lrp.EnvVar{Name: "CF_INSTANCE_CERT", Value: path.Join(contract.InstanceCredentials, contract.InstanceCertificate)},
			lrp.EnvVar{Name: "CF_INSTANCE_KEY", Value: path.Join(contract.InstanceCredentials, contract.InstanceKey)})
	}
	if rec.HasAuthority {
		env = append(env, lrp.EnvVar{Name: contract.EnvCertificates, Value: path.Clean("/" + b.full.SystemCertificatesPath)})
	}
	return env
}

// renewEach renews certificates in time, until ctx ends.
func (c *Cell) renewEach(ctx context.Context) {
	if c.cfg.Identities == nil {
		return
	}
	tick := time.NewTicker(min(sweepInterval, c.cfg.Identities.RenewBefore()/10))
	defer tick.Stop()
	for {
		c.renewAll(ctx)
		c.certifyNames(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// renewAll replaces the certificates that end soon. A container whose
// certificate could not be replaced is tried again the next time.
func (c *Cell) renewAll(ctx context.Context) {
	for _, i := range c.all() {
		rec := i.record()
		if rec.CertifiedUntil.IsZero() || time.Until(rec.CertifiedUntil) > i.renewBefore() || rec.Phase != lrp.PhaseStarting && rec.Phase != lrp.PhaseRunning {
			continue
		}
		if err := i.renewKept(rec.User.GID); err != nil && ctx.Err() == nil {
			c.cfg.Log.ErrorContext(ctx, "instance certificate was not renewed", "instance_guid", i.guid(), "err", err)
		}
	}
}

func (i *instance) renewKept(gid uint32) error {
	if err := i.renew(gid); err != nil {
		return err
	}
	if i.record().HasAuthority { // which may have been renewed, too
		if err := i.trust(gid); err != nil {
			return err
		}
	}
	if err := i.save(func(*record) {}); err != nil {
		return fmt.Errorf("keep the time of the certificate: %w", err)
	}
	return nil
}
