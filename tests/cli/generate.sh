# The man page and the completions come from the same table as the help.
doppel --generate man | grep -c '^\.SS doppel'
doppel --generate man | grep -c 'max\\-record'
doppel --generate man | grep -A 1 '^\.SH RECIPES'
doppel --generate bash >completion
bash -n completion && bash -c '. ./completion; COMP_WORDS=(doppel fi) COMP_CWORD=1; _doppel; echo "${COMPREPLY[@]}"
COMP_WORDS=(doppel df --m) COMP_CWORD=2; _doppel; echo "${COMPREPLY[@]}"'
doppel --generate zsh | head -n 1
doppel --generate nonsense
echo "exit $?"
