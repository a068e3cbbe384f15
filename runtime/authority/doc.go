// Package authority keeps certificate authorities: each is a certificate that
// signs itself and its key, in two files. One that nears its end is renewed in
// time, with its name and key: what trusts the old certificate accepts what is
// signed afterwards until that ends, and what trusts the new one accepts all
// that was signed before. The old one stays in the file, after the new, until
// it ends. Renewed renews certificates while the program runs.
package authority
