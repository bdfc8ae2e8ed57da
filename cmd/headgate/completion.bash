# What the script needs of the package bash-completion, which is not installed everywhere. Words end only at blanks, as with its
# options -n =:.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        local line="${COMP_LINE:0:COMP_POINT}"
        read -ra words <<<"${line}"
        if [[ ${line} == *[[:blank:]] ]]; then
            words+=("")
        fi
        cword=$((${#words[@]} - 1))
        cur="${words[cword]}"
        prev="${words[cword - 1]}"
    }
fi
if ! declare -F _filedir >/dev/null; then
    _filedir()
    {
        local IFS=$'\n' kind=-f
        if [[ ${1-} == -d ]]; then
            kind=-d
        fi
        COMPREPLY=($(compgen "${kind}" -- "${cur}"))
    }
fi

