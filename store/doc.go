// Package store keeps cupola's rows in one SQLite file. Every noun of package
// cf has a Table, declared in its own file with its SQL; Store.Read and
// Store.Write give the transaction that all access happens in. After a Write
// commits, those who wait for the rows that it changed wake. Derive keeps a value
// that is a function of rows current: it finds out itself which rows these are. Between
// two runs Kept and KeptBy keep rows, so that only those that changed are read again.
//
// Environment variables and whatever else may be secret are sealed with
// AES-256-GCM before they reach the file.
package store
