package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"cupola/runtime/contract"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
)

// TLSPorts says how the TLS ports of instances work: Diego's containers.proxy.
type TLSPorts struct {
	// ClientCAs vouch for clients, in PEM; nil: clients need no certificate.
	ClientCAs func() []byte
	// ClientNames are the names of which a client's certificate must have one; none:
	// any will do.
	ClientNames []string
}

// hasTLSPorts reports whether the container needs TLS ports: instances with ports
// do. Containers of a pod have none: its other containers may listen there.
func (b *build) hasTLSPorts() bool {
	return b.cell.cfg.TLSPorts != nil && b.cell.cfg.Identities != nil && b.full.Kind == lrp.KindInstance && len(b.full.Ports) > 0 && b.full.Pod == ""
}

// checkPorts refuses ports that have no TLS ports.
func (b *build) checkPorts() error {
	if !b.hasTLSPorts() {
		return nil
	}
	_, err := lrp.MapPorts(b.full.Ports)
	return err
}

// portMappings are the ports of the container.
func (i *instance) portMappings() []lrp.PortMapping {
	if i.record().TLSPorts {
		if mappings, err := lrp.MapPorts(i.spec.Ports); err == nil {
			return mappings
		}
	}
	return lrp.PlainPorts(i.spec.Ports)
}

// tlsPorts are those at which the init listens.
func (i *instance) tlsPorts() (ports []uint16) {
	for _, m := range i.portMappings() {
		if m.TLSPort != 0 {
			ports = append(ports, m.TLSPort)
		}
	}
	return ports
}

// secure gives the TLS ports a certificate with the current names.
func (i *instance) secure(gid uint32, c identity.Credentials) error {
	i.securing.Lock()
	defer i.securing.Unlock()
	settings := contract.ProxyConfig{Address: i.record().Address, Ports: map[uint16]uint16{}, Certificate: string(c.Certificate), Key: string(c.Key)}
	for _, m := range i.portMappings() {
		settings.Ports[m.TLSPort] = m.Port
	}
	if of := i.cell.cfg.TLSPorts; of != nil && of.ClientCAs != nil {
		settings.ClientCAs, settings.ClientNames = string(of.ClientCAs()), of.ClientNames
	}
	return i.secureLocked(gid, settings)
}

// secureLocked makes a certificate for the current names, and writes the settings.
func (i *instance) secureLocked(gid uint32, settings contract.ProxyConfig) error {
	names := i.cell.namesOf(i)
	cert, err := i.cell.cfg.Identities.Certify(identity.Subject{InstanceGUID: i.guid(), OrganizationalUnits: i.spec.OrganizationalUnits, Names: names}, []byte(settings.Certificate))
	if err != nil {
		return err
	}
	settings.InternalCertificate = string(cert)
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encode settings of TLS ports: %w", err)
	}
	if err := i.cell.cfg.Files.Replace(i.guid(), proxyTree, gid, []lrp.File{{Path: contract.ProxyConfigName, Content: text}}); err != nil {
		return fmt.Errorf("write settings of TLS ports: %w", err)
	}
	i.update(func(r *record) { r.InternalNames = names })
	return nil
}

// SetInternalNames says which names in internal domains lead to containers, by their
// GUIDs: the certificates that other containers see have these names when it returns
// (Diego: the internal routes of a DesiredLRP).
func (c *Cell) SetInternalNames(names map[string][]string) {
	c.mu.Lock()
	c.internalNames = names
	c.mu.Unlock()
	c.certifyNames(context.Background())
}

// namesOf are the names that lead to a container. Until they are known, a daemon that
// adopted it goes by those of its certificate.
func (c *Cell) namesOf(i *instance) []string {
	c.mu.Lock()
	names := c.internalNames
	c.mu.Unlock()
	if names == nil {
		return i.record().InternalNames
	}
	return names[i.guid()]
}

// certifyNames renews the certificates whose names have changed. One that could not be
// renewed is tried again the next time.
func (c *Cell) certifyNames(ctx context.Context) {
	if c.cfg.Identities == nil {
		return
	}
	for _, i := range c.all() {
		rec := i.record()
		if !rec.TLSPorts || rec.Phase != lrp.PhaseStarting && rec.Phase != lrp.PhaseRunning || slices.Equal(rec.InternalNames, c.namesOf(i)) {
			continue
		}
		if err := i.certifyNames(rec.User.GID); err != nil && ctx.Err() == nil {
			c.cfg.Log.ErrorContext(ctx, "certificate for other containers was not renewed", "instance_guid", i.guid(), "err", err)
		}
	}
}

func (i *instance) certifyNames(gid uint32) error {
	i.securing.Lock()
	defer i.securing.Unlock()
	text, err := i.cell.cfg.Files.Read(i.guid(), proxyTree, contract.ProxyConfigName)
	if err != nil {
		return fmt.Errorf("read settings of TLS ports: %w", err)
	}
	var settings contract.ProxyConfig
	if err := json.Unmarshal(text, &settings); err != nil {
		return fmt.Errorf("read settings of TLS ports: %w", err)
	}
	if err := i.secureLocked(gid, settings); err != nil {
		return err
	}
	return i.save(func(*record) {})
}
