// Package bbs tests Diego's BBS API.
package bbs
