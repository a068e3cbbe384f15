package cf

// Client is an OAuth client that an admin registered with the UAA. Its GUID is
// its ID, which the admin chose.
type Client struct {
	Resource
	Name           string
	SecretHash     string   // bcrypt; "": a public client, which has no secret
	TokenSalt      string   // another one voids the client's tokens
	GrantTypes     []string // "client_credentials", "authorization_code", …
	Scopes         []string // what users' tokens can have through it
	Authorities    []string // what its own tokens have
	RedirectURIs   []string // taken to the letter
	AutoApprove    []string // scopes for which users are not asked; "true": for none
	AccessSeconds  int      // 0: the default
	RefreshSeconds int      // 0: the default
}
