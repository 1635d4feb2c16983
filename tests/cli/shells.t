# The completions are what their shells can read, and know the tools.

$ trocar completion bash | bash -n

$ source <(trocar completion bash); COMP_WORDS=(trocar eng); COMP_CWORD=1; _trocar; echo "${COMPREPLY[@]}"
engines

$ source <(trocar completion bash); COMP_WORDS=(trocar engines --js); COMP_CWORD=2; _trocar; echo "${COMPREPLY[@]}"
--json

$ source <(trocar completion bash); COMP_WORDS=(trocar engines --color a); COMP_CWORD=3; _trocar; echo "${COMPREPLY[@]}"
auto always

$ source <(trocar completion bash); COMP_WORDS=(trocar completion ''); COMP_CWORD=2; _trocar; echo "${COMPREPLY[@]}"
bash zsh fish

$ touch some.onnx; source <(trocar completion bash); COMP_WORDS=(trocar engines --report so); COMP_CWORD=3; _trocar 2>/dev/null; echo "${COMPREPLY[@]}"
some.onnx

$ if command -v zsh > /dev/null; then trocar completion zsh | zsh -n; fi

$ if command -v fish > /dev/null; then trocar completion fish | fish -n; fi

# The manual page renders without a warning, in any locale.

$ trocar man > trocar.1; if command -v groff > /dev/null; then groff -ww -man -Tutf8 trocar.1 > /dev/null; fi

$ trocar man | LC_ALL=C grep -c -P '[^\x00-\x7f]'
0
[exit 1]

$ trocar man | head -n 3
.TH TROCAR 1 "" "trocar ..." "User Commands"
.SH NAME
trocar \- read a neural network, cut it at any op, run it on a real engine


$ source <(trocar completion bash); COMP_WORDS=(trocar inject re); COMP_CWORD=2; _trocar; echo "${COMPREPLY[@]}"
replay report

$ source <(trocar completion bash); COMP_WORDS=(trocar inject report --inter); COMP_CWORD=3; _trocar; echo "${COMPREPLY[@]}"
--interval
