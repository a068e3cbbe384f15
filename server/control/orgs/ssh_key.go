package orgs

import (
	"cmp"
	"crypto/dsa" //nolint:staticcheck // to refuse its keys
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// NewSSHKey is a public key to be registered.
type NewSSHKey struct {
	Name          string `json:"name"`
	PublicKey     string `json:"public_key"`
	Relationships struct {
		User change.ToOne `json:"user"`
	} `json:"relationships"`
}

// Bounds of keys.
const (
	maxKeyName   = 255
	maxKeyText   = 16 << 10 // bytes; an RSA key of 16384 bits has 2800
	maxUserKeys  = 100
	minRSAModule = 2048 // bits
)

// Validate lists what is wrong with the request alone.
func (r NewSSHKey) Validate() []string {
	return control.Must(len(r.Name) <= maxKeyName, fmt.Sprintf("Name is too long (maximum is %d characters)", maxKeyName),
		strings.IndexFunc(r.Name, unicode.IsControl) < 0, "Name must not contain control characters",
		r.PublicKey != "", "Public key can't be blank")
}

// AddSSHKey registers a public key of the actor or, for admins, of another user. Its
// comment is the name if the request has none.
func AddSSHKey(c *control.Session, req NewSSHKey) (*cf.SSHKey, error) {
	if err := c.Permit(authz.Place{}); err != nil {
		return nil, err
	}
	user, err := keyOwner(c, req.Relationships.User.GUID())
	if err != nil {
		return nil, err
	}
	key, comment, err := parseSSHKey(req.PublicKey)
	if err != nil {
		return nil, cf.Unprocessable("Public key is not accepted: %s", err)
	}
	row := &cf.SSHKey{UserGUID: user.GUID, PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), Fingerprint: ssh.FingerprintSHA256(key)}
	row.Name = cmp.Or(strings.TrimSpace(req.Name), comment, row.Fingerprint)
	if err := mayAddKey(c, row); err != nil {
		return nil, err
	}
	if err := store.SSHKeys.Insert(c.Tx, row); err != nil {
		return nil, err
	}
	return row, keyEvent(c, audit.UserSSHKeyAdd, user, row)
}

// keyOwner is the user whose key is added: the actor, if the request names none.
func keyOwner(c *control.Session, guid string) (*cf.User, error) {
	if guid != "" && guid != c.Actor.GUID && !c.Actor.Admin {
		return nil, cf.Unprocessable("Only admins can add SSH keys of other users.")
	}
	user, err := store.Users.Get(c.Tx, cmp.Or(guid, c.Actor.GUID))
	if store.IsNotFound(err) || err == nil && (user.Origin != "uaa" || user.PasswordHash == "") {
		return nil, cf.Unprocessable("Only users who can log in have SSH keys; clients have none.")
	}
	return user, err
}

func mayAddKey(c *control.Session, key *cf.SSHKey) error {
	other, err := store.SSHKeys.First(c.Tx, store.Query{Where: map[string][]string{"fingerprints": {key.Fingerprint}}})
	switch {
	case err == nil && other.UserGUID == key.UserGUID:
		return cf.Unprocessable("The key %s is already registered, as '%s'.", key.Fingerprint, other.Name)
	case err == nil:
		return cf.Unprocessable("The key %s is already registered for another user. A key belongs to one user: create another one with ssh-keygen.", key.Fingerprint)
	case !store.IsNotFound(err):
		return err
	}
	own, err := store.SSHKeys.By(c.Tx, "user_guids", key.UserGUID)
	if err != nil {
		return err
	}
	if len(own) >= maxUserKeys {
		return cf.Unprocessable("A user can have %d SSH keys: delete one of them first.", maxUserKeys)
	}
	for _, o := range own {
		if o.Name == key.Name {
			return cf.Unprocessable("An SSH key with the name '%s' exists: choose another name.", key.Name)
		}
	}
	return nil
}

// parseSSHKey reads one line of an authorized_keys file, without options. Errors say
// what is wrong with a key that is not accepted.
func parseSSHKey(text string) (key ssh.PublicKey, comment string, err error) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > maxKeyText:
		return nil, "", fmt.Errorf("it is longer than %d bytes", maxKeyText)
	case strings.Contains(text, "PRIVATE KEY"):
		return nil, "", errors.New("it is a private key. Nobody but you should have it: if others could read it just now, replace it. The public key is in the file that ends in .pub")
	case strings.ContainsAny(text, "\r\n"):
		return nil, "", errors.New("it has more than one line: add one key at a time, as a line of ~/.ssh/id_ed25519.pub")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, "", errors.New(`it is not a line like "ssh-ed25519 AAAA... comment", as ~/.ssh/id_ed25519.pub has it`)
	}
	if len(options) > 0 {
		return nil, "", errors.New("options before the key are not supported: give the key alone")
	}
	comment = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, comment)
	return key, comment[:min(len(comment), maxKeyName)], weakness(key)
}

// weakness says why a key is not accepted; nil if it is.
func weakness(key ssh.PublicKey) error {
	if _, ok := key.(*ssh.Certificate); ok {
		return errors.New("it is a certificate: give the key that it certifies")
	}
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil // of a security key: ed25519 or ecdsa
	}
	switch k := crypto.CryptoPublicKey().(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSAModule {
			return fmt.Errorf("an RSA key of %d bits is too weak; %d are the minimum. Create one with: ssh-keygen -t ed25519", bits, minRSAModule)
		}
	case *dsa.PublicKey:
		return errors.New("DSA keys are too weak. Create another one with: ssh-keygen -t ed25519")
	}
	return nil
}

// DeleteSSHKey removes a key: who logged in by it is out with the next command.
func DeleteSSHKey(c *control.Session, key *cf.SSHKey) error {
	if key.UserGUID != c.Actor.GUID && !c.Actor.Admin { // one who reads everything
		return access.NotAuthorized()
	}
	user, err := store.Users.Get(c.Tx, key.UserGUID)
	if err != nil {
		return err
	}
	if err := store.SSHKeys.Delete(c.Tx, key.GUID); err != nil {
		return err
	}
	return keyEvent(c, audit.UserSSHKeyRemove, user, key)
}

func keyEvent(c *control.Session, what audit.Type, user *cf.User, key *cf.SSHKey) error {
	return c.Audit(what, audit.Target{Type: "user", GUID: user.GUID, Name: PresentationName(user)}, c.Request(audit.Data{"name": key.Name, "fingerprint": key.Fingerprint}))
}
