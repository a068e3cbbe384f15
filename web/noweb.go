//go:build noweb

package web

import "io/fs"

// FS returns nothing: this binary was built without the console.
func FS() (files fs.FS, ok bool) { return nil, false }
