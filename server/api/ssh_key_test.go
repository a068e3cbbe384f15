package api

import (
	"strings"
	"testing"
)

// Keys made by ssh-keygen, without comments.
const (
	keyOfSelf  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEryfcdlKUw2f6hrMKWq+p7nePJaeBiB4fyuXHll92WR"
	otherKey   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAvyF1x8xW/A/Fk8aBdtbp2aIIK3U+jZBvnq6guLRmRh"
	weakRSA    = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQCeZsk41KEMRVlk8uKIP6koTZgfhxeLqpOQEF78FUuaOVqTzFkqaDZrSrDLA8lFp/GSzGAQSc0cY/Zlq0ddJTbQdzC0ATBAq+4xzr9tWZJDWp1gDb80/dNXFdtJ6+GBed+leWj1SlDF9fNAcAw8gCFMYIdX1n3i5VG88tHgCCUJtQ=="
	strongRSA  = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC3gLCLgN9BmQYMFgvbJcEu4jK2nPOeJ8vkuDCo06KV0lo8qZdQuMcoU0XehlSLxfOxVOORxZCqi783IsBkg4nq+mJSu+OTqUkN1mGzwTMagcthEQZvFeCG8Sgk/U6iz6GbvMGV/b9zatcLp5VNQ9Ph73xsXk8r4R1qRskbsf8+TaKdJPWmw80mKfwPk5s+L+lgX9b3HehhpB4FOtzCqvPJz/dfycx1Vy3o+8dYLoSFpAssSSu3Yhi6aKLZrk+KZHFFkyYCcP6cXUrOkhwG90wbZEhk9p5MFTvJkovZpInwcZWzxDzM757CuCW+fm49fU6uV5hTHw228eu1LaaIzDa3GExwWJJi6AWaYDiKtgCZMXqxeQT5p9RDG0emZBaqlNJcI6QHi1gNDjAhmd+wbk0IV5yN/x7ghReKpfgipkZ/IDqI/FE/niPH1ThCuJl6fRpxfjcfQEgS5u7/KXcSRL09kDbZeFZ0zS09da/Qf36n4aXGUWSMrPVCQKdWGNTC/hc="
	ecdsaKey   = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEz4xss2l16uUZBi4NQQ7QPDmzl72vQgAMqcyCUwLBSn3bz29mLtJq0nMCKB563s7mNnoqxX2wADCgKqu3VliKQ="
	keyOfDSA   = "ssh-dss AAAAB3NzaC1kc3MAAACBAKq7NCDS+YkYOIRCMKrPww/L7PMS2FdxwOIt+lijvTsIaa7uqA8730Oma4e4uD8cJGtc0JNBI2YaF8rDoL+5RFfexDG/NTYRKUTng1anmdS2CQXA+mDOmA7jn3iDO+E4l2+d5r1O/7nLRFusg6mmI/gnMEPNu5W1aGmCeDXkJxsXAAAAFQDsWaakrCnh8yJIaxPX0DQijm1jGQAAAIEAnI8t1pawDIy4MrGbE90o+AFXClbLFXaaz4e7Tm9vhsx2JmJMWWBRI9j0TnXQyZ4sTUNhIthkwghdcl8vupgLP4pM545vF3KA9ajdaSpV/OO9dpYwzgebD3mEd/j1N+rai1Ve+P49DbI9O2cbLYQGvha54nBC9m0JUOWEP0rgIBsAAACBAJFnFpSbMzrjbrrJI+lUyzXfxUaAtYcmQLDmH6SzbXaDGUtHw0TklQkXvWDlgQtT4BLq+UCnmTT2lRL6NBnSf0IL/op3GAIfZPLpJ6nyueqZql39NrF1oOAovxj9k86ae+BNPbgQzgC39Wu108New1nInj7wE7OHkiANxnMYWW65"
	notAccepts = "Public key is not accepted: "
)

// TestSSHKeys registers keys that are accepted, and such that are not.
func TestSSHKeys(t *testing.T) {
	w := newWorld(t)
	body := func(key string, more ...string) string {
		return `{"public_key": "` + key + `"` + strings.Join(more, "") + `}`
	}
	const ofManager = `, "relationships": {"user": {"data": {"guid": "user-org_manager"}}}`
	refused := func(key, why string) step {
		return step{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(key), status: 422, want: detail(10008, why)}
	}
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(keyOfSelf + " me@home"), status: 201, save: "mine",
			want: `{"name": "me@home", "public_key": "` + keyOfSelf + `", "last_used_at": null, "relationships": {"user": {"data": {"guid": "user-space_developer"}}}}`},
		{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(strongRSA, `, "name": "old"`), status: 201},
		{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(ecdsaKey, `, "name": "old"`), status: 422, want: detail(10008, "An SSH key with the name 'old' exists: choose another name.")},
		{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(ecdsaKey), status: 201},
		{as: "space_developer", method: "GET", path: "/v1/ssh_keys?order_by=created_at", status: 200, want: `{"pagination": {"total_results": 3}, "resources": [{"guid": "{mine}"}, {"name": "old"}, {}]}`},
		{as: "org_manager", method: "GET", path: "/v1/ssh_keys", status: 200, want: `{"pagination": {"total_results": 0}}`},
		{as: "org_manager", method: "GET", path: "/v1/ssh_keys/{mine}", status: 404, want: detail(10010, "SSH key not found")},
		{as: "org_manager", method: "DELETE", path: "/v1/ssh_keys/{mine}", status: 404, want: detail(10010, "SSH key not found")},
		{as: "space_developer", method: "POST", path: "/v1/ssh_keys", body: body(otherKey, ofManager), status: 422, want: detail(10008, "Only admins can add SSH keys of other users.")},
		{method: "POST", path: "/v1/ssh_keys", body: body(otherKey, ofManager, `, "name": "hers"`), status: 201, want: `{"relationships": {"user": {"data": {"guid": "user-org_manager"}}}}`},
		{method: "GET", path: "/v1/ssh_keys?user_guids=user-org_manager", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "POST", path: "/v1/ssh_keys", body: body(weakRSA, `, "relationships": {"user": {"data": {"guid": "none"}}}`), status: 422,
			want: detail(10008, "Only users who can log in have SSH keys; clients have none.")},
		{method: "GET", path: "/v3/audit_events?types=audit.user.ssh_key_add&target_guids=user-org_manager", status: 200,
			want: `{"resources": [{"actor": {"name": "admin"}, "target": {"type": "user", "name": "org_manager"}, "data": {"request": {"name": "hers"}}}]}`},

		refused("", "Public key can't be blank"),
		refused("ssh-ed25519", notAccepts+`it is not a line like "ssh-ed25519 AAAA... comment", as ~/.ssh/id_ed25519.pub has it`),
		refused("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA", notAccepts+`it is not a line like "ssh-ed25519 AAAA... comment", as ~/.ssh/id_ed25519.pub has it`),
		refused(`-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n`, notAccepts+"it is a private key. Nobody but you should have it: if others could read it just now, replace it. The public key is in the file that ends in .pub"),
		refused(keyOfSelf+`\n`+otherKey, notAccepts+"it has more than one line: add one key at a time, as a line of ~/.ssh/id_ed25519.pub"),
		refused(`command=\"sh\" `+otherKey, notAccepts+"options before the key are not supported: give the key alone"),
		refused(weakRSA, notAccepts+"an RSA key of 1024 bits is too weak; 2048 are the minimum. Create one with: ssh-keygen -t ed25519"),
		refused(keyOfDSA, notAccepts+"DSA keys are too weak. Create another one with: ssh-keygen -t ed25519"),
		refused(strings.Repeat("x", 20_000), notAccepts+"it is longer than 16384 bytes"),
		{as: "org_manager", method: "POST", path: "/v1/ssh_keys", body: body(keyOfSelf), status: 422},

		{as: "space_developer", method: "DELETE", path: "/v1/ssh_keys/{mine}", status: 204},
		{as: "org_manager", method: "POST", path: "/v1/ssh_keys", body: body(keyOfSelf), status: 201},
	})
}
